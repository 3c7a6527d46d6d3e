"""Tasks written in the Firebase console may be incomplete, malformed or duplicated; none of them is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import LeaseLost
from fireswarm.storage.documents import queries
from fireswarm.swarm.board import HeldLease
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


async def write(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    await swarm.store.commit([Create(f"agent_tasks/{task_id}", {"assigned_to": "scout", "status": "queued"} | fields)])


async def claim_soon(swarm: SwarmRig) -> list[HeldLease]:
    """Claim as a worker does, again after a round in which tasks were only adopted."""
    for _ in range(4):
        if held := await swarm.claim(wanted=5):
            return held
        await swarm.board.admit_hand_written("scout")
    return []


async def test_hand_written_task_is_completed_and_claimed_in_place(swarm: SwarmRig) -> None:
    await write(swarm, "by-hand", objective="count the files", context={"path": "/a"})
    assert await swarm.claim() == []  # it has no priority, so the claim query cannot see it
    assert await swarm.board.admit_hand_written("scout") == (1, "")
    [held] = await swarm.claim()
    assert (held.task.task_id, held.task.priority, held.task.session_hash) == ("by-hand", 5, "console")
    await swarm.settle(held, done("12 files"))
    assert (await swarm.raw("by-hand"))["summary"] == "12 files"


@pytest.mark.parametrize("without", [{}, {"task_id": 7}, {"task_id": None}])
async def test_contended_workers_find_a_task_whose_id_field_is_missing_or_mistyped(
    swarm: SwarmRig, without: dict[str, Any]
) -> None:
    times = {"created_at": datetime(2026, 1, 1, tzinfo=UTC), "deadline": datetime(9999, 12, 31, tzinfo=UTC)}
    document = {"assigned_to": "scout", "status": "queued", "objective": "count the files", "priority": 5}
    await swarm.store.commit([Create("agent_tasks/by-hand", document | times | without)])
    claimer = swarm.board.claimer("scout", "agent-a")
    claimer.contention.factor = 4.0  # other workers won the last races
    found: list[HeldLease] = []
    for _ in range(3):
        found += await claimer.claim(1)
    assert found or (await swarm.task("by-hand")).status is TaskStatus.BLOCKED


async def test_numbers_and_times_written_as_text_are_converted(swarm: SwarmRig) -> None:
    await write(swarm, "by-hand", objective="x", priority="9", deadline="2099-12-31T23:59:59Z")
    await swarm.board.admit_hand_written("scout")
    raw = await swarm.raw("by-hand")
    assert (raw["priority"], raw["deadline"]) == (9, datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC))


async def test_inputs_of_a_hand_written_task_are_kept(swarm: SwarmRig) -> None:
    inputs = {"capabilities": [{"id": "test_math"}], "instructions": "Be brief.", "constraints": {"team": "red"}}
    await write(swarm, "by-hand", objective="add", note="mine", **inputs)
    await swarm.board.admit_hand_written("scout")
    [held] = await swarm.claim()
    assert [use.id for use in held.task.capabilities] == ["test_math"] and held.task.instructions == "Be brief."
    await swarm.settle(held)
    raw = await swarm.raw("by-hand")
    assert (raw["constraints"], raw["note"]) == ({"team": "red"}, "mine")


async def test_two_documents_with_one_key_share_one_execution(swarm: SwarmRig) -> None:
    for task_id in ("twin-1", "twin-2"):
        await write(swarm, task_id, objective="count the files", session_hash="s1")
    await swarm.board.admit_hand_written("scout")
    [held] = await swarm.claim(wanted=5)
    assert len(await swarm.board.list()) == 2
    [other] = {"twin-1", "twin-2"} - {held.task.task_id}
    waiting = await swarm.task(other)
    assert (waiting.duplicate_of, waiting.status_reason) == (held.task.task_id, StatusReason.DEPENDENCIES)
    await swarm.settle(held)
    assert (await swarm.task(other)).status is TaskStatus.QUEUED


async def test_twin_of_a_submitted_task_waits_for_it(swarm: SwarmRig) -> None:
    original = await swarm.submit("count the files")
    await write(swarm, "twin", objective="count the files", session_hash="s1", priority=9)
    await swarm.board.admit_hand_written("scout")
    [held] = await swarm.claim(wanted=5)
    assert held.task.task_id == original.task_id
    assert (await swarm.task("twin")).duplicate_of == original.task_id


async def test_submit_returns_the_hand_written_task_that_does_the_work(swarm: SwarmRig) -> None:
    await write(swarm, "by-hand", objective="count the files", session_hash="s1")
    await swarm.board.admit_hand_written("scout")
    assert (await swarm.submit("count the files")).task_id == "by-hand"
    assert len(await swarm.board.list()) == 1


async def test_repeated_objective_is_done_again_after_its_first_task_was_canceled(swarm: SwarmRig) -> None:
    await swarm.board.cancel((await swarm.submit("count the files")).task_id)
    await write(swarm, "by-hand", objective="count the files", session_hash="s1")
    await swarm.board.admit_hand_written("scout")
    assert (await swarm.claim_one()).task.task_id == "by-hand"


async def test_repetition_does_the_work_when_the_first_task_is_canceled_while_it_waits(swarm: SwarmRig) -> None:
    await write(swarm, "gate", objective="gate", priority=1, session_hash="s1")
    original = await swarm.submit("twice", depends_on=("gate",))
    for name in ("twin-1", "twin-2"):
        await write(swarm, name, objective="twice", session_hash="s1")
    await swarm.board.admit_hand_written("scout")
    await swarm.board.cancel(original.task_id)
    while await claim_soon(swarm):
        pass
    states = {name: await swarm.task(name) for name in ("twin-1", "twin-2")}
    works = [name for name, task in states.items() if task.status is TaskStatus.IN_PROGRESS]
    assert len(works) == 1
    [other] = states.keys() - set(works)
    assert (states[other].duplicate_of, states[other].status_reason) == (works[0], StatusReason.DEPENDENCIES)


async def test_repetition_with_dependencies_waits_for_them_first(swarm: SwarmRig) -> None:
    first = await swarm.submit("once")
    await swarm.settle(await swarm.claim_one(), done("made"))
    await write(swarm, "gate", objective="gate", session_hash="s1")
    await write(swarm, "again", objective="once", session_hash="s1", depends_on=["gate"])
    await swarm.board.admit_hand_written("scout")
    assert (await swarm.task("again")).status_reason is StatusReason.DEPENDENCIES
    [gate] = await claim_soon(swarm)
    await swarm.settle(gate)
    await claim_soon(swarm)  # now it is tied to the task that did the work
    assert (await swarm.task("again")).duplicate_of == first.task_id


async def test_dependent_of_a_task_that_was_set_aside_waits_until_it_is_corrected(swarm: SwarmRig) -> None:
    await write(swarm, "odd", objective="odd", priority=99)
    await write(swarm, "after", objective="after", depends_on=["odd"])
    await swarm.board.admit_hand_written("scout")
    await claim_soon(swarm)
    assert (await swarm.raw("odd"))["status_reason"] == "dead_letter"
    assert (await swarm.task("after")).status_reason is StatusReason.DEPENDENCIES
    await swarm.store.commit([Merge("agent_tasks/odd", {"priority": 9, "status": "queued"})])
    await swarm.board.admit_hand_written("scout")
    [held] = await claim_soon(swarm)
    assert held.task.task_id == "odd"
    await swarm.settle(held)
    assert (await swarm.task("after")).status is TaskStatus.QUEUED


async def test_copy_of_a_task_made_in_the_console_is_a_duplicate_of_it(swarm: SwarmRig) -> None:
    original = await swarm.submit("count the files")
    await swarm.store.commit([Create("agent_tasks/copy", await swarm.raw(original.task_id))])
    assert await swarm.claim(wanted=5) == []  # the copy is tied to the original, which changes by that
    [held] = await swarm.claim(wanted=5)
    assert held.task.task_id == original.task_id
    assert (await swarm.task("copy")).duplicate_of == original.task_id


async def test_hand_written_task_waits_for_its_dependencies(swarm: SwarmRig) -> None:
    await write(swarm, "first", objective="first")
    await write(swarm, "second", objective="second", depends_on=["first"])
    await swarm.board.admit_hand_written("scout")
    [held] = await swarm.claim(wanted=5)
    waiting = await swarm.task("second")
    assert (held.task.task_id, waiting.status_reason, waiting.waiting_on) == ("first", StatusReason.DEPENDENCIES, 1)
    await swarm.settle(held)
    assert [lease.task.task_id for lease in await claim_soon(swarm)] == ["second"]


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [([], ["gone"], "depends_on names gone, which does not exist"), (["second"], ["first"], "makes a cycle")],
)
async def test_dependency_that_can_never_be_met_sets_the_task_aside(
    swarm: SwarmRig, first: list[str], second: list[str], fault: str
) -> None:
    await write(swarm, "first", objective="first", depends_on=first)
    await write(swarm, "second", objective="second", depends_on=second)
    await swarm.board.admit_hand_written("scout")
    aside = [
        raw for name in ("first", "second") if (raw := await swarm.raw(name)).get("status_reason") == "dead_letter"
    ]
    assert aside and all(fault in raw["summary"] for raw in aside)


@pytest.mark.parametrize("status", ["canceled", "done"])
async def test_status_set_by_hand_ends_the_task_with_all_that_belongs_to_it(swarm: SwarmRig, status: str) -> None:
    task = await swarm.submit("first")
    after = await swarm.submit("second", depends_on=(task.task_id,))
    held = await swarm.claim_one()
    await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", {"status": status})])
    [edited] = await swarm.store.query(queries.ended_by_hand("scout"))
    assert await swarm.board.settle_edited(edited)
    raw = await swarm.raw(task.task_id)
    assert (raw["status"], raw["lease"], "open" in raw, "ended_at" in raw) == (status, None, False, True)
    assert (await swarm.run(held))["status"] == "error"
    assert (await swarm.task(after.task_id)).status is (TaskStatus.QUEUED if status == "done" else TaskStatus.BLOCKED)
    assert await swarm.store.query(queries.ended_by_hand("scout")) == []
    with pytest.raises(LeaseLost):
        await swarm.settle(held)


async def test_lease_of_another_program_is_reclaimed_after_it_expired(swarm: SwarmRig) -> None:
    lease = {"owner_agent_id": "other", "expires_at": swarm.clock.now() + timedelta(seconds=30)}
    await write(swarm, "theirs", objective="x", status="in_progress", lease=lease)
    assert (await swarm.board.reclaim_expired("scout")).queued == ()
    await swarm.clock.advance(31)
    assert (await swarm.board.reclaim_expired("scout")).queued == ("theirs",)


async def test_malformed_task_is_blocked_and_names_its_invalid_fields(swarm: SwarmRig) -> None:
    await write(swarm, "broken", objective="x", priority="urgent", deadline="soon")
    await swarm.claim()
    await swarm.board.admit_hand_written("scout")
    raw = await swarm.raw("broken")
    assert (raw["status"], raw["status_reason"]) == (TaskStatus.BLOCKED, StatusReason.DEAD_LETTER)
    assert "priority" in raw["summary"]
    assert "deadline" in raw["summary"]
    assert raw["objective"] == "x"


@pytest.mark.parametrize(
    ("field", "told"), [("depends_on", "should be a list"), ("context", "should be an object"), ("priority", "integer")]
)
async def test_field_of_the_wrong_type_is_named_in_words_of_json(swarm: SwarmRig, field: str, told: str) -> None:
    await write(swarm, "odd", objective="x", **{field: "wrong"})
    await claim_soon(swarm)
    summary = (await swarm.raw("odd"))["summary"]
    assert f"{field}: Input " in summary and told in summary
