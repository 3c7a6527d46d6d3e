"""CPU-bound skills delay neither lease renewals nor heartbeats, and stop when their task is canceled."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from fireswarm.contracts.swarm.task import Task, TaskSpec, TaskStatus
from fireswarm.settings import load_settings
from fireswarm.storage.documents import queries
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.worker.loop import Worker
from tests.support.fleet import lay_out
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

LEASE_SECONDS = 1.0
STOP_SECONDS = 2.0
BUSY = """
import re, time
from fireswarm.contracts.skills.skill import SkillResult

def run(request):
    until = time.monotonic() + request.context["seconds"]
    while time.monotonic() < until:
        re.fullmatch("(a|a)*b", "a" * 18)  # holds the interpreter lock for long stretches
    return SkillResult(summary="busy no more")
"""


@asynccontextmanager
async def busy_swarm(root: Path) -> AsyncGenerator[tuple[SwarmParts, Worker]]:
    settings = {"leases": {"lease_seconds": LEASE_SECONDS}, "worker": {"heartbeat_working_seconds": 0.2}}
    lay_out(root, {"busy": BUSY}, settings={**settings, "store": {"uri": "memory"}})
    async with open_parts(load_settings(root, environment={})) as core:
        worker = Worker(core, "scout", "scout-1")
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            yield core, worker
            worker.stop()


async def submit(core: SwarmParts, seconds: float) -> str:
    spec = TaskSpec(objective="be busy", assigned_to="scout", session_hash="s", context={"seconds": seconds})
    return (await core.board.submit(spec)).task.task_id


async def until(core: SwarmParts, task_id: str, status: TaskStatus) -> Task:
    async with core.store.listen(queries.chain(task_id)) as snapshots:
        async for _ in snapshots:
            task = await core.board.get(task_id)
            if task.status is status:
                return task
    raise AssertionError("the listener ended")


async def test_turn_longer_than_its_lease_keeps_the_lease(tmp_path: Path) -> None:
    async with busy_swarm(tmp_path) as (core, _):
        task_id = await submit(core, 3 * LEASE_SECONDS)
        with anyio.fail_after(PATIENCE_SECONDS):
            task = await until(core, task_id, TaskStatus.DONE)
        assert (task.epoch, task.attempt, task.summary) == (1, 0, "busy no more")


async def test_a_cancelled_turn_stops_within_two_seconds(tmp_path: Path) -> None:
    async with busy_swarm(tmp_path) as (core, worker):
        task_id = await submit(core, 60)
        with anyio.fail_after(PATIENCE_SECONDS):
            await until(core, task_id, TaskStatus.IN_PROGRESS)
        await core.board.cancel(task_id)
        with anyio.fail_after(STOP_SECONDS):
            while worker.held:
                await anyio.lowlevel.checkpoint()
