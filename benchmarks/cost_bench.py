"""Billed operations: of one no-op task end to end, and of five idle roles over a simulated day.

The day is virtual: the real workers, board and store run under a clock that is advanced by hand.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict

import anyio

from benchmarks.common import benchmark_kit, drained, emit, submit_noops, workers
from firelite.database import Database
from firelite.query.index_definitions import IndexSet
from firelite.wire.inprocess import connect
from fireswarm.clocks import VirtualClock
from fireswarm.settings import Settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.storage.firestore.store import FirestoreStore
from fireswarm.swarm.opening.embedded_store import INDEXES_FILE
from fireswarm.swarm.opening.open_parts import make_parts

TASKS = 1_000
DAY_SECONDS = 86_400.0
STEP_SECONDS = 600.0
FREE_READS, FREE_WRITES = 50_000, 20_000


async def per_task() -> dict[str, float]:
    """Submit and drain; count everything, heartbeats included."""
    async with benchmark_kit() as swarm:
        await submit_noops(swarm, TASKS)
        async with workers(swarm) as running:
            await drained(running, TASKS)
        used = swarm.store.usage
    return {"reads": round(used.reads / TASKS, 3), "writes": round(used.writes / TASKS, 3)}


async def idle_day() -> dict[str, int]:
    """Five roles with nothing to do, from midnight to midnight."""
    clock = VirtualClock(turns=40)
    indexes = IndexSet.load(packaged_path(INDEXES_FILE))
    with Database.open(None, indexes=indexes, clock=clock.nanoseconds) as database:
        store = FirestoreStore(connect(database), clock)
        swarm = make_parts(Settings(), store, clock)
        async with contextlib.AsyncExitStack() as stack:
            for role in sorted(swarm.roles):
                await stack.enter_async_context(workers(swarm, 1, role))
            for _ in range(round(DAY_SECONDS / STEP_SECONDS)):
                await clock.advance(STEP_SECONDS)
            return asdict(store.usage)


async def main() -> None:
    """Both."""
    started = time.perf_counter()
    day = await idle_day()
    emit(
        "billed_operations",
        noop_task=await per_task(),
        idle_day_of_five_roles=day,
        within_free_tier=day["reads"] <= FREE_READS and day["writes"] <= FREE_WRITES,
        seconds=round(time.perf_counter() - started, 1),
    )


if __name__ == "__main__":
    anyio.run(main)
