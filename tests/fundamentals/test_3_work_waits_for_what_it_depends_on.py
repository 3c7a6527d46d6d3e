"""Dependencies and children: the commit that ends the last of them queues the waiting task, without a scan."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Failed, Handoff
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult, TaskStatus
from fireswarm.errors import GraphInvalid, InvalidInput
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


def plan(key: str, *needs: str, role: str = "scout") -> PlannedTask:
    return PlannedTask(key=key, assigned_to=role, objective=f"do {key}", depends_on=needs)


async def diamond(swarm: SwarmRig, **fields: Any) -> Task:
    root = await swarm.submit("the whole", role="architect", **fields)
    held = await swarm.claim_one(role="architect")
    tasks = (plan("a"), plan("b", "a"), plan("c", "a"), plan("d", "b", "c"))
    await swarm.settle(held, Handoff(tasks, result=TaskResult(summary="planned")))
    return await swarm.task(root.task_id)


async def test_dependent_task_is_blocked_until_its_last_dependency_is_done(swarm: SwarmRig) -> None:
    first, second = await swarm.submit("first"), await swarm.submit("second")
    last = await swarm.submit("last", depends_on=(first.task_id, second.task_id))
    assert (last.status, last.status_reason, last.waiting_on) == (TaskStatus.BLOCKED, StatusReason.DEPENDENCIES, 2)
    for held in await swarm.claim(wanted=5):
        await swarm.settle(held)
    stored = await swarm.task(last.task_id)
    assert (stored.status, stored.status_reason, stored.waiting_on) == (TaskStatus.QUEUED, None, 0)


async def test_task_with_finished_dependencies_does_not_wait(swarm: SwarmRig) -> None:
    first = await swarm.submit("first")
    await swarm.settle(await swarm.claim_one())
    assert (await swarm.submit("last", depends_on=(first.task_id,))).status is TaskStatus.QUEUED


async def test_parent_resumes_after_all_tasks_of_its_plan_are_done(swarm: SwarmRig) -> None:
    root = await diamond(swarm)
    assert (root.status_reason, root.waiting_on, len(root.children)) == (StatusReason.DELEGATING, 4, 4)
    order: list[str] = []
    while held := await swarm.claim(wanted=1):
        order.append(held[0].task.plan_key)
        await swarm.settle(held[0])
    assert order[0] == "a"
    assert set(order[1:3]) == {"b", "c"}
    assert order[3] == "d"
    resumed = await swarm.claim_one(role="architect")
    assert (resumed.task.task_id, resumed.epoch) == (root.task_id, 2)
    await swarm.settle(resumed, done("whole"))
    assert (await swarm.task(root.task_id)).status is TaskStatus.DONE


async def test_invalid_plan_is_refused_completely(swarm: SwarmRig) -> None:
    await swarm.submit("the whole", role="architect")
    held = await swarm.claim_one(role="architect")
    for tasks, fault in [
        ((plan("a", "b"), plan("b", "a")), "cycle through a, b"),
        ((plan("a", role="pilot"),), "not a role of this swarm"),
        ((plan("a", "ghost"),), "depends on ghost"),
        ((plan("a"), plan("a")), "used twice"),
        ((), "no task"),
        (tuple(plan(f"t{n}") for n in range(401)), "more than the 400"),
    ]:
        with pytest.raises(GraphInvalid, match=fault):
            await swarm.settle(held, Handoff(tasks))
    assert len(await swarm.board.list()) == 1


async def test_canceled_dependency_blocks_the_dependent_task_with_a_reason(swarm: SwarmRig) -> None:
    first = await swarm.submit("first")
    last = await swarm.submit("last", depends_on=(first.task_id,))
    await swarm.board.cancel(first.task_id)
    stored = await swarm.task(last.task_id)
    assert stored.status_reason is StatusReason.ESCALATED
    assert first.task_id in stored.summary
    assert (await swarm.board.retry(last.task_id)).status is TaskStatus.QUEUED


async def test_retried_child_lets_the_parent_continue(swarm: SwarmRig) -> None:
    root = await diamond(swarm, on_child_failure="wait")
    held = await swarm.claim_one()
    await swarm.settle(held, Failed("no such folder"))
    assert await swarm.claim(wanted=5) == []
    assert (await swarm.task(root.task_id)).status_reason is StatusReason.DELEGATING
    await swarm.board.retry(held.task.task_id)
    while again := await swarm.claim(wanted=5):
        for lease in again:
            await swarm.settle(lease)
    assert (await swarm.task(root.task_id)).status is TaskStatus.QUEUED


async def test_unknown_dependency_is_refused(swarm: SwarmRig) -> None:
    with pytest.raises(InvalidInput, match="ghost, but session s1 has no such task"):
        await swarm.submit("last", depends_on=("ghost",))
    assert await swarm.board.list() == []
