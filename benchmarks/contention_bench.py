"""Wasted claims: 32 workers on one role, a queue of no-ops; claims lost for each one won, and reads a task.

The workers share a process and a store, so they wake and ask at the same instants: harder than life.
``trickle`` feeds them one task at a time, which wakes all of them.
"""

from __future__ import annotations

from typing import Any

import anyio

from benchmarks.common import benchmark_kit, drained, emit, submit_noops, workers
from fireswarm.processes.startup import loop_options

WORKERS = 32
TASKS = 3_000
TRICKLE = 200


async def main() -> None:
    """Drain a queue, then trickle."""
    figures: dict[str, Any] = {}
    async with benchmark_kit(concurrency=2) as swarm:
        await submit_noops(swarm, TASKS)
        before = swarm.store.usage.copy()
        async with workers(swarm, WORKERS) as running:
            await drained(running, TASKS)
            won, lost = (sum(worker.contention[part] for worker in running) for part in (0, 1))
            reads = swarm.store.usage.minus(before).reads
            figures["queue"] = {"wasted_per_success": round(lost / won, 3), "reads_per_task": round(reads / TASKS, 2)}
            for number in range(TRICKLE):
                await submit_noops(swarm, 1, tag=f"trickle-{number}-")
                await drained(running, TASKS + number + 1)
            won2, lost2 = (sum(worker.contention[part] for worker in running) for part in (0, 1))
            figures["trickle"] = {"wasted_per_success": round((lost2 - lost) / (won2 - won), 3)}
    emit("wasted_claims", workers=WORKERS, tasks=TASKS, **figures)


if __name__ == "__main__":
    anyio.run(main, backend_options=loop_options())
