"""How many reads a task costs when many workers are idle: about the same for 12 and for 100."""

from __future__ import annotations

import anyio
import pytest

from fireswarm.swarm.worker.loop import Worker
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

TASKS = 10
MAX_READS = 14.0
"""For each task: `WOKEN` deliveries, the winner's next look at the queue, and its new listener."""


async def reads_per_task(swarm: SwarmRig, idle: int) -> float:
    workers = [Worker(swarm.core, "scout", f"scout-{number}") for number in range(idle)]
    found = 0.0
    async with anyio.create_task_group() as group:
        for worker in workers:
            group.start_soon(worker.run)
        await swarm.clock.advance(90)  # each has counted the others, and has listened again since
        before, done = swarm.store.usage.reads, 0
        for number in range(TASKS):
            await swarm.submit(f"task {number}", skill="noop")
            for _ in range(50):
                await swarm.clock.settle()
                done = sum(worker.settled for worker in workers)
                if done > number:
                    break
        assert done == TASKS
        found = (swarm.store.usage.reads - before) / TASKS
        for worker in workers:
            worker.stop()
    return found


@pytest.mark.parametrize("idle", [12, 100])
async def test_a_task_wakes_a_few_workers_however_many_are_idle(swarm: SwarmRig, idle: int) -> None:
    found = await reads_per_task(swarm, idle)
    print(f"{idle} idle workers: {found} reads a task")
    assert found <= MAX_READS
