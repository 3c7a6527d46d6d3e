"""A worker that is bound to sessions leaves the tasks of all others alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fireswarm.contracts.swarm.task import TaskStatus
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, working

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("sessions", [("ours",), ("ours", "third")])
@pytest.mark.parametrize("factor", [1.0, 64.0])
async def test_only_tasks_of_the_sessions_are_claimed(
    swarm: SwarmRig, sessions: tuple[str, ...], factor: float
) -> None:
    for number in range(5):
        await swarm.submit(f"theirs {number}", session="theirs", priority=10)
    ours = {(await swarm.submit(f"ours {number}", session="ours")).task_id for number in range(3)}
    claimer = swarm.board.claimer("scout", "agent-a", sessions)
    claimer.contention.factor = factor
    assert {held.task.task_id for held in await claimer.claim(10)} == ours
    assert await claimer.claim(10) == []


async def test_bound_worker_wakes_up_for_its_session_only(swarm: SwarmRig) -> None:
    core = with_skills(swarm)
    worker_settings = core.settings.worker.model_copy(update={"sessions": ("ours",)})
    bound = replace(core, settings=core.settings.model_copy(update={"worker": worker_settings}))
    async with working(bound) as worker:
        await swarm.clock.settle()
        theirs = await swarm.submit("theirs", session="theirs", skill="noop")
        await swarm.clock.advance(120)
        ours = await swarm.submit("ours", session="ours", skill="noop")
        await eventually(swarm, lambda: worker.settled == 1, "working")
        await swarm.clock.advance(120)
    assert (await swarm.task(ours.task_id)).status is TaskStatus.DONE
    assert (await swarm.task(theirs.task_id)).status is TaskStatus.QUEUED
