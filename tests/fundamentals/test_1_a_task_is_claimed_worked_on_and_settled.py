"""The life cycle of a task: submit, claim under a lease, settle; each step is one commit on its document."""

from __future__ import annotations

import pytest

from fireswarm.contracts.swarm.task import TaskStatus
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


async def test_a_submitted_task_waits_in_the_queue_of_its_role(swarm: SwarmRig) -> None:
    task = await swarm.submit("find the docs", role="scout")
    stored = await swarm.task(task.task_id)
    assert stored.status is TaskStatus.QUEUED
    assert await swarm.claim(role="executor") == []


async def test_claiming_leases_the_task_to_one_agent(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    await swarm.claim_one("agent-a")
    stored = await swarm.task(task.task_id)
    assert stored.status is TaskStatus.IN_PROGRESS
    assert stored.lease is not None
    assert (stored.lease.owner_agent_id, stored.lease.epoch) == ("agent-a", 1)
    assert await swarm.claim("agent-b") == []


async def test_settled_task_is_done_and_keeps_its_result(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    held = await swarm.claim_one()
    await swarm.settle(held, done("found three", insights=("three docs",)))
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.lease, stored.summary) == (TaskStatus.DONE, None, "found three")
    assert stored.result is not None
    assert stored.result.insights == ("three docs",)
    assert stored.ended_at is not None


async def test_same_objective_in_one_session_returns_the_same_task(swarm: SwarmRig) -> None:
    first = await swarm.submit("count files", context={"path": "/a", "depth": 2})
    second = await swarm.submit("count  files ", context={"depth": 2, "path": "/a"})
    assert second.task_id == first.task_id
    other = await swarm.submit("count files", context={"path": "/a", "depth": 2}, session="s2")
    assert other.task_id != first.task_id
    anew = await swarm.submit("count files", context={"path": "/a", "depth": 2}, fresh_key="again")
    assert anew.task_id != first.task_id


async def test_tasks_are_claimed_by_priority_then_deadline_then_age(swarm: SwarmRig) -> None:
    now = swarm.clock.now()
    old = await swarm.submit("old")
    await swarm.clock.advance(1)
    new = await swarm.submit("new")
    due = await swarm.submit("due soon", deadline=now.replace(year=2027))
    urgent = await swarm.submit("urgent", priority=9)
    order = [(await swarm.claim_one()).task.task_id for _ in range(4)]
    assert order == [urgent.task_id, due.task_id, old.task_id, new.task_id]
