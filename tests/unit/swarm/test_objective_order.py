"""The tasks of an objective: their order for people, its end, and a parent that waits for more than a few."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Failed, Handoff
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.swarm.board.dependents import MAX_WRITTEN
from fireswarm.swarm.board.graph import is_over, sort_objective
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


async def test_tasks_are_sorted_by_what_they_depend_on_after_their_parent(swarm: SwarmRig) -> None:
    parent = await swarm.submit("parent", role="architect")
    plan = (
        PlannedTask(key="write", assigned_to="executor", objective="write", depends_on=("look", "rank")),
        PlannedTask(key="rank", assigned_to="predictor", objective="rank", depends_on=("look",)),
        PlannedTask(key="look", assigned_to="scout", objective="look"),
    )
    await swarm.settle(await swarm.claim_one(role="architect"), Handoff(plan))
    tasks = await swarm.board.list()
    random.Random(7).shuffle(tasks)
    assert [task.objective for task in sort_objective(tasks)] == ["parent", "look", "rank", "write"]
    assert not is_over(tasks, parent.task_id)
    assert not is_over(tasks, "no such task")


async def test_objective_is_over_when_no_task_can_move(swarm: SwarmRig) -> None:
    parent = await swarm.submit("parent", role="architect")
    plan = (PlannedTask(key="look", assigned_to="scout", objective="look"),)
    await swarm.settle(await swarm.claim_one(role="architect"), Handoff(plan, resume=False))
    await swarm.settle(await swarm.claim_one(), Failed("broken"))
    tasks = await swarm.board.list()
    assert is_over(tasks, parent.task_id)
    assert {task.status for task in tasks} <= {TaskStatus.BLOCKED, TaskStatus.DONE}


async def test_objective_is_not_over_between_the_end_of_its_last_task_and_the_count_that_wakes_its_parent(
    swarm: SwarmRig,
) -> None:
    parent = await swarm.submit("parent", role="architect")
    plan = tuple(PlannedTask(key=f"t{n}", assigned_to="scout", objective=f"part {n}") for n in range(MAX_WRITTEN + 3))
    await swarm.settle(await swarm.claim_one(role="architect"), Handoff(plan))

    def ended(task: Task, **last: Any) -> Task:
        if task.task_id == parent.task_id:
            return task
        return task.model_copy(update={"status": TaskStatus.DONE} | (last if task.plan_key == "t0" else {}))

    tasks = await swarm.board.list()
    assert not is_over([ended(task) for task in tasks], parent.task_id)
    lost = {"status": TaskStatus.BLOCKED, "status_reason": StatusReason.ESCALATED}
    assert is_over([ended(task, **lost) for task in tasks], parent.task_id)


async def test_parent_of_many_children_goes_on_after_the_last(swarm: SwarmRig) -> None:
    many = MAX_WRITTEN + 3
    parent = await swarm.submit("parent", role="architect")
    plan = tuple(PlannedTask(key=f"t{n}", assigned_to="scout", objective=f"part {n}") for n in range(many))
    await swarm.settle(await swarm.claim_one(role="architect"), Handoff(plan))
    for number in range(many):
        assert (await swarm.task(parent.task_id)).status is TaskStatus.BLOCKED, number
        await swarm.settle(await swarm.claim_one())
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED
