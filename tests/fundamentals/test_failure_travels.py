"""A task that is given up, or canceled, is named by every task that waits for it, and its parent does what it may."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Failed, Handoff
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio

CHAIN = (
    PlannedTask(key="a", assigned_to="executor", objective="first"),
    PlannedTask(key="b", assigned_to="executor", objective="second", depends_on=("a",)),
    PlannedTask(key="c", assigned_to="predictor", objective="beside"),
)


async def plan(swarm: SwarmRig, **fields: Any) -> tuple[Task, dict[str, Task]]:
    """A parent that waits for a, for b behind it, and for c."""
    await swarm.submit("parent", **fields)
    held = await swarm.claim_one()
    await swarm.board.settle(held, Handoff(CHAIN))
    parent = await swarm.task(held.task.task_id)
    children = [await swarm.task(task_id) for task_id in parent.children]
    return parent, {child.plan_key: child for child in children}


async def give_up(swarm: SwarmRig) -> None:
    await swarm.board.settle(await swarm.claim_one(role="executor"), Failed("the disk is full"))


async def test_parent_runs_again_when_all_children_have_ended_or_were_given_up(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    await give_up(swarm)
    waiting = await swarm.task(parent.task_id)
    assert (waiting.waiting_on, waiting.status_reason) == (1, StatusReason.DELEGATING)
    assert "the disk is full" in waiting.summary
    behind = await swarm.task(children["b"].task_id)
    assert behind.status_reason is StatusReason.DEPENDENCIES and "the disk is full" in behind.summary
    await swarm.settle(await swarm.claim_one(role="predictor"), done())
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


async def test_parent_whose_last_child_is_given_up_waits_for_an_agent(swarm: SwarmRig) -> None:
    parent, _ = await plan(swarm)
    await swarm.settle(await swarm.claim_one(role="predictor"), done())
    await give_up(swarm)
    ready = await swarm.task(parent.task_id)
    assert (ready.status, ready.waiting_on) == (TaskStatus.QUEUED, 0)
    assert ready.summary == "all its tasks ended, waits for an agent"


async def test_retried_child_is_waited_for_again(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    await give_up(swarm)
    await swarm.board.retry(children["a"].task_id)
    waiting = await swarm.task(parent.task_id)
    assert (waiting.waiting_on, waiting.gave_up, waiting.summary) == (3, (), "waits for 3 tasks")
    for role in ("predictor", "executor", "executor"):
        assert (await swarm.task(parent.task_id)).status is TaskStatus.BLOCKED
        await swarm.settle(await swarm.claim_one(role=role), done())
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


async def test_child_that_ends_after_it_was_given_up_is_not_counted_twice(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    await give_up(swarm)
    await swarm.board.cancel(children["a"].task_id)
    waiting = await swarm.task(parent.task_id)
    assert (waiting.status, waiting.waiting_on) == (TaskStatus.BLOCKED, 1)


async def test_summary_of_the_parent_counts_the_tasks_that_it_still_waits_for(swarm: SwarmRig) -> None:
    await swarm.submit("parent")
    three = tuple(PlannedTask(key=key, assigned_to="executor", objective=key) for key in "abc")
    await swarm.board.settle(await swarm.claim_one(), Handoff(three))
    [parent] = [task for task in await swarm.board.list() if task.children]
    await swarm.settle(await swarm.claim_one(role="executor"), done())
    await give_up(swarm)
    waiting = await swarm.task(parent.task_id)
    assert waiting.waiting_on == 1 and "1 task" in waiting.summary


@pytest.mark.parametrize(("policy", "reason"), [("wait", StatusReason.DELEGATING), ("fail", StatusReason.ESCALATED)])
async def test_policy_of_the_parent_holds(swarm: SwarmRig, policy: str, reason: StatusReason) -> None:
    parent, _ = await plan(swarm, on_child_failure=policy)
    await give_up(swarm)
    waiting = await swarm.task(parent.task_id)
    assert waiting.status_reason is reason and "the disk is full" in waiting.summary


async def test_failure_found_by_a_sweep_travels_too(swarm: SwarmRig) -> None:
    parent, _ = await plan(swarm)
    for _ in range(5):
        await swarm.claim_one(role="executor")
        await swarm.clock.advance(61)
        await swarm.board.sweep("executor")
    waiting = await swarm.task(parent.task_id)
    assert waiting.waiting_on == 1 and "gave up after 5 attempts" in waiting.summary


async def test_canceled_dependency_escalates_what_is_behind_it_and_its_parent_goes_on(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    await swarm.board.cancel(children["a"].task_id)
    assert (await swarm.task(children["b"].task_id)).status_reason is StatusReason.ESCALATED
    await swarm.settle(await swarm.claim_one(role="predictor"), done())
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


async def damage(swarm: SwarmRig, task_id: str) -> None:
    await swarm.store.commit([Merge(f"agent_tasks/{task_id}", {"max_attempts": "many"})])


async def test_unreadable_child_is_named_to_its_parent_which_goes_on(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    await damage(swarm, children["a"].task_id)
    assert await swarm.claim(role="executor") == []
    assert (await swarm.raw(children["a"].task_id))["status_reason"] == "dead_letter"
    waiting = await swarm.task(parent.task_id)
    assert waiting.waiting_on == 1 and "was set aside" in waiting.summary and "max_attempts" in waiting.summary
    assert "was set aside" in (await swarm.task(children["b"].task_id)).summary
    await swarm.settle(await swarm.claim_one(role="predictor"), done())
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


async def test_unreadable_task_behind_a_child_is_named_too(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    await damage(swarm, children["b"].task_id)
    await swarm.settle(await swarm.claim_one(role="executor"), done())
    assert (await swarm.raw(children["b"].task_id))["status_reason"] == "dead_letter"
    assert "was set aside" in (await swarm.task(parent.task_id)).summary
    assert swarm.board.aside.count == 1


async def test_unreadable_dependent_does_not_hold_up_the_others(swarm: SwarmRig) -> None:
    first = await swarm.submit("first", role="executor")
    for number in range(2):
        await swarm.submit(f"later {number}", depends_on=(first.task_id,))
    unreadable, other = (await swarm.task(first.task_id)).dependents
    await damage(swarm, unreadable)
    await swarm.settle(await swarm.claim_one(role="executor"), done())
    assert (await swarm.raw(unreadable))["status_reason"] == "dead_letter"
    assert (await swarm.task(other)).status is TaskStatus.QUEUED


async def test_dependents_that_name_no_document_do_not_stop_a_task_from_being_set_aside(swarm: SwarmRig) -> None:
    parent, children = await plan(swarm)
    stored = {"dependents": [7, "a/b", "..", "__x__", "", None, parent.task_id], "max_attempts": "many"}
    await swarm.store.commit([Merge(f"agent_tasks/{children['c'].task_id}", stored)])
    assert await swarm.claim(role="predictor") == []
    assert "was set aside" in (await swarm.task(parent.task_id)).summary


@pytest.mark.parametrize("odd", ["__x__", ".", ".."])
async def test_document_that_names_an_impossible_id_is_set_aside_before_it_runs(swarm: SwarmRig, odd: str) -> None:
    task = await swarm.submit("part")
    await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", {"dependents": [odd]})])
    assert await swarm.claim() == []
    raw = await swarm.raw(task.task_id)
    assert raw["status_reason"] == "dead_letter" and "dependents" in raw["summary"] and "reserved" in raw["summary"]


@pytest.mark.parametrize("allowed", ["____", "__id7__", "__x", "..."])
async def test_unusual_id_that_firestore_accepts_is_accepted(swarm: SwarmRig, allowed: str) -> None:
    data = {"assigned_to": "executor", "status": "queued", "objective": "first", "session_hash": "s1"}
    await swarm.store.commit([Create(f"agent_tasks/{allowed}", data)])
    await swarm.board.admit_hand_written("executor")
    last = await swarm.submit("last", depends_on=(allowed,))
    await swarm.settle(await swarm.claim_one(role="executor"), done())
    assert (await swarm.task(last.task_id)).status is TaskStatus.QUEUED
