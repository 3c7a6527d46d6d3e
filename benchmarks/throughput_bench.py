"""No-op tasks a second end to end: one worker process, concurrency 20, each with lease, run and journal.

Embedded (store in the worker's process) and over gRPC (store in another process). The tasks wait in the
queue when the clock starts; a hundred went through before, so that indexes and imports are warm. The last
figures say what bounds it: the CPU seconds that the drain took in this process beside its wall seconds,
and the share of them by part of the program (a profile of its own run).
"""

from __future__ import annotations

import cProfile
import pstats
import statistics
import time
from collections import defaultdict
from typing import Any

import anyio

from benchmarks.common import benchmark_kit, drained, emit, submit_noops, workers
from fireswarm.processes.startup import loop_options

TASKS = 3_000
PROFILED_TASKS = 1_000
ROUNDS = 3
WARMUP = 100
PARTS = ("stores", "board", "worker", "turn", "journal", "contracts")


async def drain(*, grpc: bool, tasks: int, profile: cProfile.Profile | None = None) -> dict[str, float]:
    """Submit, then drain; returns rates and the CPU share."""
    async with benchmark_kit(grpc=grpc) as swarm:
        await submit_noops(swarm, WARMUP, tag="warm-")
        async with workers(swarm) as running:
            await drained(running, WARMUP)
        submitting = await submit_noops(swarm, tasks)
        before = swarm.store.usage.copy()
        cpu, wall = time.process_time(), time.perf_counter()
        if profile is not None:
            profile.enable()
        async with workers(swarm) as running:
            await drained(running, tasks)
            if profile is not None:
                profile.disable()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        used = swarm.store.usage.minus(before)
    return {
        "tasks_per_second": tasks / wall,
        "submits_per_second": tasks / submitting,
        "cpu_share": cpu / wall,
        "reads_per_task": used.reads / tasks,
        "writes_per_task": used.writes / tasks,
    }


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """Each part's share of the profiled time, in percent."""
    stats: Any = pstats.Stats(profile)
    spent: defaultdict[str, float] = defaultdict(float)
    for (filename, _, _), (_, _, own, _, _) in stats.stats.items():
        spent[_part(filename)] += own
    total = sum(spent.values())
    return {part: round(100 * seconds / total, 1) for part, seconds in sorted(spent.items(), key=lambda item: -item[1])}


def _part(filename: str) -> str:
    if "/firelite/" in filename:
        return "firelite"
    if "/fireswarm/" in filename:
        return next((f"fireswarm.{part}" for part in PARTS if f"/{part}" in filename), "fireswarm, rest")
    if "site-packages" in filename:
        return filename.partition("site-packages/")[2].partition("/")[0]
    return "asyncio" if "asyncio" in filename else "python and C code"


async def main() -> None:
    """Median of three rounds each."""
    figures: dict[str, Any] = {}
    for name, grpc in (("embedded", False), ("grpc", True)):
        rounds = [await drain(grpc=grpc, tasks=TASKS) for _ in range(ROUNDS)]
        figures[name] = {key: round(statistics.median(item[key] for item in rounds), 3) for key in rounds[0]}
    profile = cProfile.Profile()
    await drain(grpc=False, tasks=PROFILED_TASKS, profile=profile)
    figures["embedded"]["share_of_time_percent"] = shares(profile)
    bound = "the CPU of the worker's process" if figures["embedded"]["cpu_share"] > 0.85 else "waiting"
    emit("throughput", tasks=TASKS, bound_by=bound, **figures)


if __name__ == "__main__":
    anyio.run(main, backend_options=loop_options())
