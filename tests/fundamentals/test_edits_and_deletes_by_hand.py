"""People edit and delete documents in the console; no task is stranded, and none gets the result of other work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fireswarm.contracts.ports import DELETE_FIELD, Create, Delete, Update
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import ChildFailure, StatusReason, TaskStatus
from fireswarm.errors import InvalidInput, WorkEdited
from tests.support.swarm import SwarmRig, done
from tests.support.working import eventually, with_skills, working

pytestmark = pytest.mark.anyio


async def write(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    data = {"assigned_to": "scout", "status": "queued", "objective": f"by hand {task_id}", "session_hash": "s1"}
    await swarm.store.commit([Create(f"agent_tasks/{task_id}", data | fields)])


async def edit(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    await swarm.store.commit([Update(f"agent_tasks/{task_id}", fields)])


async def delete(swarm: SwarmRig, task_id: str) -> None:
    await swarm.store.commit([Delete(f"agent_tasks/{task_id}")])


async def state(swarm: SwarmRig, task_id: str) -> tuple[TaskStatus, StatusReason | None]:
    task = await swarm.task(task_id)
    return task.status, task.status_reason


# ── hand-written tasks that no claim can see ────────────────────────────────────────────────────────────────

UNSEEN: list[dict[str, Any]] = [
    {},
    {"priority": 10},
    {"priority": None},
    {"priority": "10"},
    {"priority": 10, "deadline": None},
]


@pytest.mark.parametrize("fields", UNSEEN)
@pytest.mark.parametrize("name", ["0-first", "f-last", "zz-by-hand", "Ab3xYconsole"])
async def test_a_hand_written_task_is_found_while_the_queue_never_runs_dry(
    both: SwarmRig, fields: dict[str, Any], name: str
) -> None:
    for number in range(3):
        await both.submit(f"complete {number}")
    await write(both, name, **fields)
    adopted, _ = await both.board.admit_hand_written("scout")
    assert adopted == 1
    assert name in {lease.task.task_id for lease in await both.claim(wanted=10)}
    assert await both.board.admit_hand_written("scout") == (0, "")


async def test_search_for_hand_written_tasks_reads_no_document_if_there_are_none(swarm: SwarmRig) -> None:
    for number in range(3):
        await swarm.submit(f"complete {number}")
    before = swarm.store.usage.copy()
    assert await swarm.board.admit_hand_written("scout") == (0, "")
    assert swarm.store.usage.minus(before).reads == 2, "it costs more than two counts"


async def test_a_hand_written_task_among_many_is_found_within_a_few_sweeps(swarm: SwarmRig) -> None:
    for number in range(620):
        await swarm.submit(f"complete {number}")
    await write(swarm, "zz-by-hand")
    after, adopted = "", 0
    for _ in range(2):
        found, after = await swarm.board.admit_hand_written("scout", after)
        adopted += found
    assert adopted == 1


async def test_a_busy_worker_adopts_hand_written_tasks(swarm: SwarmRig) -> None:
    """The worker always has work; the hand-written task is of the highest priority."""
    order: list[str] = []

    async def noop(request: Any) -> Any:
        order.append(request.objective)
        if len(order) < 200 and "urgent" not in order:
            await swarm.submit(f"complete {len(order)}", skill="noop")
            await swarm.clock.sleep(2.0)
        return await swarm.core.inline["noop"](request)

    for number in range(60):
        await swarm.submit(f"first {number}", skill="noop")
    core = with_skills(swarm, noop=noop)
    async with working(core) as worker:
        await write(swarm, "urgent", objective="urgent", skill="noop", priority=10)
        for _ in range(100):
            await swarm.clock.advance(1.0)
            if "urgent" in order:
                break
        assert "urgent" in order, f"{len(order)} others went before it"
        await swarm.clock.advance(3)
        assert worker.faults == 0


# ── edits change the work ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("change", [{"objective": "pay invoice 2"}, {"context": {"n": 2}}])
async def test_a_task_that_was_edited_no_longer_stands_for_its_old_work(both: SwarmRig, change: dict[str, Any]) -> None:
    first = await both.submit("pay invoice 1", context={"n": 1})
    await edit(both, first.task_id, **change)
    await write(both, "twin", objective="pay invoice 1", context={"n": 1})
    again = await both.submit("pay invoice 1", context={"n": 1})
    assert again.task_id not in (first.task_id, "twin")
    assert (await both.submit("pay invoice 1", context={"n": 1})).task_id == again.task_id, "submitted twice"
    await both.board.admit_hand_written("scout")
    done_by: dict[str, str] = {}
    for _ in range(6):
        for lease in await both.claim(wanted=5):
            if lease.task.duplicate_of is None:
                done_by[lease.task.task_id] = lease.task.objective
                await both.settle(lease, done(lease.task.objective))
    assert done_by[first.task_id] == {**{"objective": "pay invoice 1"}, **change}["objective"]
    assert "pay invoice 1" in {done_by.get(again.task_id), done_by.get("twin")}


async def test_a_task_that_waits_for_the_same_work_does_it_itself_after_the_original_was_edited(both: SwarmRig) -> None:
    original = await both.submit("pay invoice 1")
    await write(both, "twin", objective="pay invoice 1", priority=1)
    await both.board.admit_hand_written("scout")
    [held] = await both.claim()
    assert held.task.task_id == original.task_id
    await both.claim()  # adopts the twin, which waits for the original
    assert await state(both, "twin") == (TaskStatus.BLOCKED, StatusReason.DEPENDENCIES)
    await edit(both, original.task_id, objective="pay invoice 2")
    with pytest.raises(WorkEdited):
        await both.settle(held)
    await both.board.cancel(original.task_id)
    claimed = [lease for _ in range(3) for lease in await both.claim()]
    assert [(lease.task.task_id, lease.task.duplicate_of) for lease in claimed] == [("twin", None)]


async def test_a_turn_is_repeated_if_its_task_was_edited_meanwhile(swarm: SwarmRig) -> None:
    seen: list[str] = []

    async def noop(request: Any) -> Any:
        seen.append(request.objective)
        if len(seen) == 1:
            await edit(swarm, request.task_id, objective="pay invoice 2")
        return await swarm.core.inline["noop"](request)

    async with working(with_skills(swarm, noop=noop)) as worker:
        task = await swarm.submit("pay invoice 1", skill="noop")
        await eventually(swarm, lambda: worker.settled == 2, "both turns")
    assert seen == ["pay invoice 1", "pay invoice 2"]
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.objective, stored.attempt) == (TaskStatus.DONE, "pay invoice 2", 0)


async def test_a_secret_in_the_objective_does_not_count_as_an_edit() -> None:
    from fireswarm.redaction import Redactor
    from fireswarm.storage.firestore.store import FirestoreStore
    from tests.support.swarm import open_test_swarm

    async with open_test_swarm() as swarm:
        store: FirestoreStore = swarm.store
        store._redact = Redactor(["hunter2hunter2"])  # pyright: ignore[reportPrivateUsage]
        first = await swarm.submit("log in with hunter2hunter2")
        again = await swarm.submit("log in with hunter2hunter2")
        assert first.task_id == again.task_id
        [held] = await swarm.claim()
        assert "hunter2" not in held.task.objective
        await swarm.settle(held)
        assert (await swarm.submit("log in with hunter2hunter2")).status is TaskStatus.DONE


# ── deleted and ended dependencies ────────────────────────────────────────────────────────────────────────


async def sweeps(swarm: SwarmRig, role: str = "scout", seconds: float = 40.0) -> None:
    await swarm.clock.advance(seconds)
    await swarm.board.sweep(role)


@pytest.mark.parametrize("number", [1, 3, 9, 12])
@pytest.mark.parametrize("how", ["deleted", "canceled", "done"])
async def test_a_dependency_without_an_agent_strands_nobody(both: SwarmRig, number: int, how: str) -> None:
    """The dependencies belong to a role without an agent: a person deletes or ends one of them."""
    needed = [(await both.submit(f"need {item}", role="memory")).task_id for item in range(number)]
    last = await both.submit("last", depends_on=tuple(needed))
    for lease in await both.claim(role="memory", wanted=number):
        if lease.task.task_id != needed[0]:
            await both.settle(lease)
    await (delete(both, needed[0]) if how == "deleted" else edit(both, needed[0], status=how, lease=None))
    if how != "done":
        explained = await both.board.explain(await both.task(last.task_id))
        assert "0 task(s)" not in explained
        assert any(stall.path.endswith(last.task_id) for stall in await both.board.stalls())
    await sweeps(both)
    if how == "done":
        assert (await both.task(last.task_id)).status is TaskStatus.QUEUED
        return
    assert await state(both, last.task_id) == (TaskStatus.BLOCKED, StatusReason.ESCALATED)
    assert f"which was {how}" in (await both.task(last.task_id)).summary
    assert (await both.board.retry(last.task_id)).status is TaskStatus.QUEUED


@pytest.mark.parametrize("number", [2, 12])
@pytest.mark.parametrize("policy", list(ChildFailure))
async def test_a_deleted_child_strands_no_parent(both: SwarmRig, number: int, policy: ChildFailure) -> None:
    parent = await both.submit("plan", role="architect", on_child_failure=policy)
    held = await both.claim_one(role="architect")
    plan = [PlannedTask(key=f"k{item}", assigned_to="memory", objective=f"child {item}") for item in range(number)]
    await both.settle(held, Handoff(tuple(plan), resume=True))
    first, *others = await both.claim(role="memory", wanted=number)
    for lease in others:
        await both.settle(lease)
    await delete(both, first.task.task_id)
    await sweeps(both, "architect")
    expected = (
        (TaskStatus.BLOCKED, StatusReason.ESCALATED) if policy is ChildFailure.FAIL else (TaskStatus.QUEUED, None)
    )
    assert await state(both, parent.task_id) == expected


async def test_retry_runs_a_task_whose_dependency_is_gone_before_any_sweep(both: SwarmRig) -> None:
    needed = await both.submit("need", role="memory")
    last = await both.submit("last", depends_on=(needed.task_id,))
    with pytest.raises(InvalidInput, match="only a task that failed or is paused"):
        await both.board.retry(last.task_id)
    await delete(both, needed.task_id)
    assert (await both.board.retry(last.task_id)).status is TaskStatus.QUEUED


async def test_a_waiting_task_is_checked_less_and_less_often(swarm: SwarmRig) -> None:
    needed = await swarm.submit("need", role="memory")
    await swarm.submit("last", depends_on=(needed.task_id,))
    reads: list[int] = []
    for _ in range(24):
        before = swarm.store.usage.reads + swarm.store.usage.writes
        for _ in range(60):
            await sweeps(swarm, seconds=60.0)
        reads.append(swarm.store.usage.reads + swarm.store.usage.writes - before - 60)
    assert reads[-1] <= 5, reads
    assert sum(reads) < 120


# ── states without what belongs to them ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lease", [{}, {"owner_agent_id": "someone"}, "someone"])
async def test_a_task_in_progress_with_a_broken_lease_is_set_aside_and_named(both: SwarmRig, lease: Any) -> None:
    task = await both.submit()
    await both.claim_one()
    await edit(both, task.task_id, lease=lease, sweep_at=DELETE_FIELD)
    await both.board.requeue_unheld("scout")
    assert "lease" in (await both.raw(task.task_id))["summary"]
    assert (await both.board.retry(task.task_id)).status is TaskStatus.QUEUED


@pytest.mark.parametrize("lease", [None, DELETE_FIELD])
async def test_a_task_in_progress_that_nobody_holds_is_queued(both: SwarmRig, lease: Any) -> None:
    task = await both.submit()
    await both.claim_one()
    await edit(both, task.task_id, lease=lease, sweep_at=DELETE_FIELD)
    await both.board.requeue_unheld("scout")
    stored = await both.task(task.task_id)
    assert (stored.status, stored.attempt) == (TaskStatus.QUEUED, 0)


@pytest.mark.parametrize("fields", [{"status": "in_progress"}, {"status": "blocked"}])
async def test_a_hand_written_state_without_its_fields_is_explained_and_can_be_retried(
    both: SwarmRig, fields: dict[str, Any]
) -> None:
    await write(both, "by-hand", **fields)
    task = await both.task("by-hand")
    assert "swarm retry by-hand" in await both.board.explain(task)
    assert any(stall.path.endswith("by-hand") for stall in await both.board.stalls())
    assert (await both.board.retry("by-hand")).status is TaskStatus.QUEUED


async def test_not_before_of_a_queued_task_is_kept(both: SwarmRig) -> None:
    task = await both.submit()
    await edit(both, task.task_id, not_before=both.clock.now() + timedelta(hours=1))
    assert await both.claim() == []
    assert await state(both, task.task_id) == (TaskStatus.BLOCKED, StatusReason.PAUSED)
    await sweeps(both, seconds=3500)
    assert await both.claim() == []
    await sweeps(both, seconds=200)
    assert len(await both.claim()) == 1
