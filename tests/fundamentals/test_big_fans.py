"""Many children, dependents or repetitions of one task settle in one commit."""

from __future__ import annotations

import pytest

from fireswarm.contracts.ports import Create
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


async def test_plan_of_400_tasks_is_created_and_its_parent_resumes(swarm: SwarmRig) -> None:
    parent = await swarm.submit("parent", role="architect")
    held = await swarm.claim_one(role="architect")
    plan = tuple(PlannedTask(key=f"t{n}", assigned_to="scout", objective=f"part {n}") for n in range(400))
    await swarm.settle(held, Handoff(plan))
    assert (await swarm.task(parent.task_id)).waiting_on == 400
    for _ in range(20):
        for lease in await swarm.claim(wanted=20):
            await swarm.settle(lease)
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


@pytest.mark.parametrize("canceled", [False, True])
async def test_task_with_500_dependents_ends(swarm: SwarmRig, canceled: bool) -> None:
    first = await swarm.submit("first")
    later = [(await swarm.submit(f"later {n}", depends_on=(first.task_id,))).task_id for n in range(500)]
    held = await swarm.claim_one()
    if canceled:
        await swarm.board.cancel(first.task_id)
    else:
        await swarm.settle(held, done())
    reasons = {(await swarm.task(task_id)).status_reason for task_id in later}
    assert reasons == {StatusReason.ESCALATED if canceled else None}


async def test_520_repetitions_of_a_task_end_with_it(swarm: SwarmRig) -> None:
    fields = {"assigned_to": "scout", "status": "queued", "objective": "once", "session_hash": "s1"}
    first = await swarm.submit("once")
    for number in range(520):
        await swarm.store.commit([Create(f"agent_tasks/twin-{number:03}", fields)])
    for _ in range(12):
        await swarm.board.admit_hand_written("scout")
    [held] = await swarm.claim(wanted=20)
    assert held.task.task_id == first.task_id
    await swarm.settle(held, done("made"))
    queued = await swarm.board.list(limit=600, status="queued")
    assert len(queued) == 520 and {task.duplicate_of for task in queued} == {first.task_id}
