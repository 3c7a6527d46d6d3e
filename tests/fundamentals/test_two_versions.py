"""Two versions of the fleet side by side: the older one does what it can, and never destroys what a newer one wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Update
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import SCHEMA_VERSION, StatusReason, TaskStatus
from fireswarm.errors import NewerDocument
from fireswarm.swarm.board import BoardRules
from fireswarm.swarm.worker import mail, work_by_mail
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.working import work_message, working

pytestmark = pytest.mark.anyio

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NEWER: list[dict[str, Any]] = [
    {"schema_version": SCHEMA_VERSION + 1},
    {"schema_version": SCHEMA_VERSION + 1, "priority": "urgent", "policy": {"kind": "new"}},
    {"schema_version": SCHEMA_VERSION + 1, "context": ["now a list"]},
    {"on_child_failure": "ask_the_parent"},
    {"status_reason": "waits_for_quota"},
]


async def everything_an_old_worker_does(swarm: SwarmRig, role: str) -> None:
    """Claim, sweep, adopt, reclaim and settle edits, for an hour."""
    claimer = swarm.board.claimer(role, "old-1")
    for _ in range(12):
        await claimer.claim(5)
        await swarm.board.sweep(role)
        await swarm.board.admit_hand_written(role)
        await swarm.board.requeue_unheld(role)
        await swarm.board.reclaim_expired(role)
        await swarm.clock.advance(300)


@pytest.mark.parametrize("fields", NEWER)
@pytest.mark.parametrize(
    "state",
    [
        {"status": "queued"},
        {"status": "blocked", "status_reason": "paused"},
        {"status": "blocked", "status_reason": "dependencies", "waiting_on": 1},
        {"status": "in_progress", "lease": {"owner_agent_id": "new-1", "epoch": 1, "expires_at": LONG_AGO}},
    ],
    ids=["queued", "paused", "waits", "held"],
)
async def test_a_document_of_a_newer_version_stays_as_it_is(
    both: SwarmRig, fields: dict[str, Any], state: dict[str, Any]
) -> None:
    task = await both.submit("theirs")
    past = both.clock.now()
    await both.store.commit([Update(f"agent_tasks/{task.task_id}", {**state, "sweep_at": past, **fields})])
    before = await both.raw(task.task_id)
    await everything_an_old_worker_does(both, "scout")
    assert await both.raw(task.task_id) == before
    with pytest.raises(NewerDocument, match="schema_version|newer version"):
        await both.task(task.task_id)


async def test_newer_documents_at_the_head_of_the_queue_stop_nobody(both: SwarmRig) -> None:
    for number in range(30):
        task = await both.submit(f"theirs {number}", priority=9)
        await both.store.commit([Update(f"agent_tasks/{task.task_id}", NEWER[0])])
    ours = [(await both.submit(f"ours {number}")).task_id for number in range(5)]
    claimer = both.board.claimer("scout", "old-1")
    held = [lease.task.task_id for _ in range(8) for lease in await claimer.claim(5)]
    assert sorted(held) == sorted(ours)


async def test_newer_due_documents_do_not_stop_the_sweep(both: SwarmRig) -> None:
    for number in range(60):
        task = await both.submit(f"theirs {number}")
        await both.store.commit(
            [Update(f"agent_tasks/{task.task_id}", {**NEWER[0], "status": "blocked", "sweep_at": both.clock.now()})]
        )
    await both.clock.advance(1)
    ours = await both.submit("ours")
    await both.claim_one()
    await both.clock.advance(3600)
    for _ in range(3):
        await both.board.sweep("scout")
    assert (await both.task(ours.task_id)).status is TaskStatus.QUEUED


async def test_an_unknown_field_is_carried_through_a_whole_life(both: SwarmRig) -> None:
    new = {"billing": {"account": "a1", "limits": [1, 2]}, "labels": ["x"]}
    task = await both.submit("ours, with more")
    await both.store.commit([Update(f"agent_tasks/{task.task_id}", new)])
    await both.settle(await both.claim_one())
    raw = await both.raw(task.task_id)
    assert {name: raw[name] for name in new} == new
    assert raw["schema_version"] == SCHEMA_VERSION


async def test_a_claim_looks_past_twice_a_sweep_of_tasks_that_are_left_to_others() -> None:
    async def has_skill(name: str) -> bool:
        return name != "count-v2"

    async with open_test_swarm(rules=BoardRules(sweep_batch=3)) as swarm:
        for number in range(6):
            await swarm.submit(f"task {number}", skill="count-v2")
        behind = await swarm.submit("behind them", priority=1)
        claimer = swarm.board.claimer("scout", "old-1", has_skill=has_skill)
        held = [lease.task.task_id for _ in range(8) for lease in await claimer.claim(1)]
    assert held == [behind.task_id]


async def test_a_worker_leaves_a_task_whose_skill_it_lacks_to_another(both: SwarmRig) -> None:
    ids = [(await both.submit(f"task {number}", skill="count-v2")).task_id for number in range(4)]

    async def has_skill(name: str) -> bool:
        return name != "count-v2"

    old = both.board.claimer("scout", "old-1", has_skill=has_skill)
    other = await both.submit("behind them", priority=1)
    assert await old.claim(4) == []
    assert [lease.task.task_id for lease in await old.claim(4)] == [other.task_id], "they stand in the way of others"
    assert {(await both.task(task_id)).status for task_id in ids} == {TaskStatus.QUEUED}
    await both.clock.advance(31)
    assert await old.claim(4) == []
    for task_id in ids:
        task = await both.task(task_id)
        assert (task.status, task.status_reason, task.attempt) == (TaskStatus.BLOCKED, StatusReason.PAUSED, 0)
        assert "an agent with the skill count-v2, which old-1 does not have" in task.summary
    await both.clock.advance(40)
    await both.board.sweep("scout")
    new = both.board.claimer("scout", "new-1")
    held = await new.claim(4)
    assert {lease.task.task_id for lease in held} == set(ids)
    for lease in held:
        await both.settle(lease)


async def test_a_fleet_of_two_versions_does_all_work_once(swarm: SwarmRig) -> None:
    """The old worker has no skill `noop-2`; the new one has both."""
    from dataclasses import replace

    from fireswarm.swarm.parts import noop

    new = replace(swarm.core, inline={"noop": noop, "noop-2": noop})
    tasks = [await swarm.submit(f"task {number}", skill="noop-2" if number % 2 else "noop") for number in range(12)]
    async with working(swarm.core, agent="old-1"), working(new, agent="new-1"):
        stored = tasks
        for _ in range(200):
            await swarm.clock.advance(5)
            stored = [await swarm.task(task.task_id) for task in tasks]
            if all(task.status is TaskStatus.DONE for task in stored):
                break
    assert {(task.status, task.attempt, task.epoch) for task in stored} == {(TaskStatus.DONE, 0, 1)}


async def test_a_message_of_a_newer_version_is_left_to_a_newer_worker(both: SwarmRig) -> None:
    await both.core.mailbox.send(work_message(), "architect-1", "scout", sender_role="architect")
    for fields in ({"schema_version": 2}, {"schema_version": 2, "payload": "packed"}, {"kind": "order"}):
        await both.store.commit([Update("agent_mailbox/m1", fields)])
        before = (await both.store.get("agent_mailbox/m1")).data
        await mail.act_on(both.core, "scout", await both.store.get("agent_mailbox/m1"), work_by_mail.create_work)
        assert (await both.store.get("agent_mailbox/m1")).data == before
    assert await both.board.list() == []


async def test_a_document_is_taken_up_once_a_person_has_corrected_it(both: SwarmRig) -> None:
    data = {"assigned_to": "scout", "status": "queued", "objective": "x", "on_child_failure": "replann", "priority": 5}
    await both.store.commit([Create("agent_tasks/by-hand", data)])
    claimer = both.board.claimer("scout", "agent-1")
    await both.board.admit_hand_written("scout")
    assert await claimer.claim(1) == []
    await both.store.commit([Update("agent_tasks/by-hand", {"on_child_failure": "wait"})])
    await both.board.admit_hand_written("scout")
    assert [lease.task.task_id for lease in await claimer.claim(1)] == ["by-hand"]


# ── an old worker meets newer documents in its own work ─────────────────────────────────────────────────────────


async def make_newer(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    await swarm.store.commit([Update(f"agent_tasks/{task_id}", {"schema_version": SCHEMA_VERSION + 1, **fields})])


@pytest.mark.parametrize("relation", ["child", "dependency"])
async def test_a_turn_that_needs_a_newer_document_is_left_to_others(swarm: SwarmRig, relation: str) -> None:
    """A newer agent planned the children, or did the dependency; an old one gets the task that reads them."""
    if relation == "child":
        parent = await swarm.submit("plans", skill="noop")
        plan = Handoff((PlannedTask(key="a", assigned_to="executor", objective="a child"),), resume=True)
        await swarm.settle(await swarm.claim_one(), plan)
        needed = (await swarm.task(parent.task_id)).children[0]
    else:
        needed = (await swarm.submit("is needed", role="executor")).task_id
        parent = await swarm.submit("needs it", skill="noop", depends_on=(needed,))
    await swarm.settle(await swarm.claim_one(role="executor"))
    await make_newer(swarm, needed)
    async with working(swarm.core, agent="old-1"):
        for _ in range(40):
            await swarm.clock.advance(5)
    stored = await swarm.raw(parent.task_id)
    assert (stored["status"], stored["status_reason"]) == ("blocked", "retry_backoff")
    assert stored.get("attempt", 0) == 0 and "schema_version" in stored["summary"]
    assert stored["epoch"] <= 2, "old agents tried again"
    for task_id in (needed, parent.task_id):  # as a newer agent sees them
        await swarm.store.commit([Update(f"agent_tasks/{task_id}", {"schema_version": SCHEMA_VERSION})])
    async with working(swarm.core, agent="new-1"):
        for _ in range(20):
            await swarm.clock.advance(5)
    assert (await swarm.task(parent.task_id)).status is TaskStatus.DONE


async def test_a_hand_written_task_does_not_wait_for_a_newer_one_that_is_done(both: SwarmRig) -> None:
    needed = await both.submit("is needed")
    await both.settle(await both.claim_one())
    await make_newer(both, needed.task_id)
    data = {"assigned_to": "scout", "status": "queued", "objective": "x", "session_hash": "s1"}
    await both.store.commit([Create("agent_tasks/by-hand", data | {"depends_on": [needed.task_id]})])
    claimer = both.board.claimer("scout", "old-1")
    held: list[str] = []
    for _ in range(3):
        await both.board.admit_hand_written("scout")
        held += [lease.task.task_id for lease in await claimer.claim(5)]
    assert held == ["by-hand"]


@pytest.mark.parametrize("fields", [{"max_attempts": "many"}, {"schema_version": 2, "session_hash": "s2"}])
async def test_a_hand_written_task_waits_for_a_done_one_that_is_unreadable_or_foreign(
    both: SwarmRig, fields: dict[str, Any]
) -> None:
    needed = await both.submit("is needed")
    await both.settle(await both.claim_one())
    await both.store.commit([Update(f"agent_tasks/{needed.task_id}", fields)])
    data = {"assigned_to": "scout", "status": "queued", "objective": "x", "session_hash": "s1"}
    await both.store.commit([Create("agent_tasks/by-hand", data | {"depends_on": [needed.task_id]})])
    await both.board.admit_hand_written("scout")
    assert await both.board.claimer("scout", "old-1").claim(5) == []
    assert (await both.raw("by-hand"))["status_reason"] == "dependencies"


async def test_work_that_a_newer_task_does_is_not_done_twice(both: SwarmRig) -> None:
    first = await both.submit("pay invoice 1")
    await make_newer(both, first.task_id)
    data = {"assigned_to": "scout", "status": "queued", "objective": "pay invoice 1", "session_hash": "s1"}
    await both.store.commit([Create("agent_tasks/twin", data)])
    await everything_an_old_worker_does(both, "scout")
    assert (await both.raw("twin"))["status"] == "queued"
    assert await both.board.claimer("scout", "old-2").claim(5) == []
    with pytest.raises(NewerDocument):
        await both.submit("pay invoice 1")
    await both.store.commit([Update(f"agent_tasks/{first.task_id}", {"schema_version": SCHEMA_VERSION})])
    new = both.board.claimer("scout", "new-1")
    await both.board.admit_hand_written("scout")
    assert [lease.task.task_id for lease in await new.claim(5)] == [first.task_id]
