"""Update the tasks that wait for another one: in the commit that ends it, gives it up, or queues it again.

Each end of a task is a write to the documents that wait for it, and Firestore sustains about one write a second to one
document. So a task that waits for more than `MAX_COUNTED` others is not written: after the commit its unfinished tasks
are counted with an aggregation query, and it is written only when few are left. A sweep repeats the count, for the case
that a worker ended between commit and count.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.limits import MAX_STORED_SUMMARY_CHARS, SHORT_ID_CHARS, truncate
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.task import (
    GIVEN_UP,
    WAITS_FOR_OTHERS,
    ChildFailure,
    StatusReason,
    Task,
    TaskStatus,
)
from fireswarm.errors import Conflict, InvalidInput, StoreError
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.by_hand.set_aside import set_aside_write
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import first_line, queued_fields, unleased_fields

MAX_COUNTED = 8
"""Largest number of awaited tasks of which each writes the waiting document when it ends."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WaitingTask:
    """A task that waits for others, as it was read, and those of its children that were given up."""

    snapshot: Snapshot
    task: Task
    children: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Told:
    """The writes that update the dependents of a task, and the dependents to count after their commit."""

    writes: list[Write] = field(default_factory=list)
    to_count: list[str] = field(default_factory=list)


async def commit_with_dependents(
    board: BoardContext,
    task: Task,
    writes: Sequence[Write],
    status: TaskStatus,
    reason: StatusReason | None = None,
    summary: str = "",
) -> None:
    """Commit *writes*, which bring *task* to *status*, together with those that update its dependents.

    Each dependent must be unchanged. Costs one read and one write per dependent, for one that waits for more than
    `MAX_COUNTED` tasks three reads and no write; a task without dependents costs nothing. A task that was given up also
    costs a read for each task behind it. Raises Conflict.
    """
    told = await _tell(board.store, task, status, reason, summary)
    await board.store.commit([*writes, *told.writes])
    for task_id in told.to_count:
        try:
            await count_awaited(board, task_id)
        except (StoreError, Conflict, InvalidInput) as error:  # the commit stands; a sweep counts again
            _log.warning("the tasks that %s waits for could not be counted: %s", task_id, error)


async def _tell(store: Store, task: Task, status: TaskStatus, reason: StatusReason | None, summary: str) -> Told:
    if not task.dependents:
        return Told()
    if status is TaskStatus.DONE:
        return await _tell_of_end(store, task)
    if status is TaskStatus.CANCELED:
        return await _tell_of_failure(store, task, f"task {_short(task)} was canceled", canceled=True)
    if status is TaskStatus.BLOCKED and reason in GIVEN_UP:
        text = f"task {_short(task)} was given up: {first_line(summary)}"
        return await _tell_of_failure(store, task, text, canceled=False)
    return Told()


async def _tell_of_end(store: Store, ended: Task) -> Told:
    """Return the writes that count a task which is done; one that was given up before is counted already."""
    told = Told()
    async for waiting in _read_waiting(store, ended.dependents, told.writes):
        if waiting.task.waiting_on > MAX_COUNTED:
            told.to_count.append(waiting.task.task_id)
        elif ended.task_id not in waiting.task.gave_up:
            told.writes.append(Update(waiting.snapshot.path, _fewer(waiting.task, 1), waiting.snapshot.update_time))
    return told


async def count_awaited(board: BoardContext, task_id: str) -> bool:
    """Count the tasks that a task waits for; queue it, or correct ``waiting_on``, if at most `MAX_COUNTED` are left.

    Returns True if the document changed. The task is read before the others are counted, so the write fails if
    another worker counted one of them meanwhile.
    """
    store = board.store
    for _ in range(board.rules.settle_attempts):
        snapshot = await store.get(task_path(task_id))
        if snapshot.data is None:
            return False
        task = parse_task_snapshot(snapshot)
        if task.status is not TaskStatus.BLOCKED or task.status_reason not in WAITS_FOR_OTHERS:
            return False
        left = await _count_left(store, task)
        if left > MAX_COUNTED or left >= task.waiting_on:
            return False
        try:
            await store.commit([Update(snapshot.path, _fewer(task, task.waiting_on - left), snapshot.update_time)])
        except Conflict:
            continue
        return True
    return False  # others are counting


async def _count_left(store: Store, task: Task) -> int:
    """Return how many tasks *task* still waits for: neither done nor given up. Two billed reads for 1,000 tasks."""
    registered = await store.count(queries.awaited_by(task.task_id))
    done = await store.count(queries.awaited_by(task.task_id, status=TaskStatus.DONE.value))
    left = registered - done
    if left - len(task.gave_up) > MAX_COUNTED:
        return left - len(task.gave_up)
    given_up = await store.get_many([task_path(child_id) for child_id in task.gave_up])
    return left - sum((child.data or {}).get("status") not in (None, TaskStatus.DONE) for child in given_up)


async def _tell_of_failure(store: Store, failed: Task, text: str, *, canceled: bool) -> Told:
    """Return the writes that name the failure on every task behind *failed*, and resume or fail their parents.

    A task that depends on a canceled one can never run as planned: it is escalated.
    """
    told = Told()
    writes = told.writes
    stuck, parents = await _find_stuck(store, failed, writes)
    for waiting in stuck:
        if canceled and waiting.task.duplicate_of == failed.task_id:
            ready = f"task {failed.task_id} with the same work was canceled, this one does it"
            fields = queued_fields(waiting.task, ready) | {"waiting_on": 0}
            fields |= {"duplicate_of": DELETE_FIELD, "key_id": DELETE_FIELD}  # the next claim adopts it again
        elif canceled and failed.task_id in waiting.task.depends_on:
            summary = (
                f"depends on task {failed.task_id}, which was canceled: retry runs this one anyway, cancel ends it"
            )
            fields = unleased_fields(waiting.task, TaskStatus.BLOCKED, StatusReason.ESCALATED, summary)
        else:
            fields = {"summary": _waiting_summary(waiting.task.waiting_on, text), "updated_at": SERVER_TIME}
        writes.append(Update(waiting.snapshot.path, fields, waiting.snapshot.update_time))
    for waiting in parents:
        ended = {failed.task_id} if canceled else set[str]()
        writes.append(Update(waiting.snapshot.path, _after_failure(waiting, text, ended), waiting.snapshot.update_time))
        if waiting.task.waiting_on > MAX_COUNTED:
            told.to_count.append(waiting.task.task_id)
    return told


async def tell_of_retry(store: Store, task: Task) -> list[Write]:
    """Return the writes by which the parents of a retried task, if they still wait, wait for it again."""
    if task.status_reason not in GIVEN_UP or not task.dependents:
        return []
    writes: list[Write] = []
    stuck, parents = await _find_stuck(store, task, writes)
    for waiting in stuck:
        fields = {"summary": f"waits for {waiting.task.waiting_on} task(s)", "updated_at": SERVER_TIME}
        writes.append(Update(waiting.snapshot.path, fields, waiting.snapshot.update_time))
    for waiting in parents:
        again = waiting.children & set(waiting.task.gave_up)
        count = waiting.task.waiting_on + len(again)
        fields: dict[str, Any] = {
            "gave_up": [task_id for task_id in waiting.task.gave_up if task_id not in again],
            "waiting_on": count,
            "summary": f"waits for {count} task(s)",
            "updated_at": SERVER_TIME,
        }
        writes.append(Update(waiting.snapshot.path, fields, waiting.snapshot.update_time))
    return writes


async def _find_stuck(store: Store, failed: Task, writes: list[Write]) -> tuple[list[WaitingTask], list[WaitingTask]]:
    """Return the tasks that depend on *failed*, directly or not, and the parents of all of these."""
    stuck: dict[str, WaitingTask] = {}
    parents: dict[str, WaitingTask] = {}
    pending = [failed]
    while pending:
        current = pending.pop()
        async for waiting in _read_waiting(store, current.dependents, writes):
            dependent = waiting.task
            if current.task_id in dependent.children:
                parents.setdefault(dependent.task_id, waiting).children.add(current.task_id)
            elif dependent.task_id not in stuck:
                stuck[dependent.task_id] = waiting
                pending.append(dependent)
    return list(stuck.values()), list(parents.values())


async def _read_waiting(store: Store, ids: Iterable[str], writes: list[Write]) -> AsyncIterator[WaitingTask]:
    """Yield the tasks of *ids* that wait for others. An unreadable one is set aside by a write, and stops no other."""
    for snapshot in await store.get_many([task_path(task_id) for task_id in dict.fromkeys(ids)]):
        if snapshot.data is None:
            continue
        try:
            task = parse_task_snapshot(snapshot)
        except InvalidInput as error:
            if snapshot.data.get("status") == TaskStatus.BLOCKED:
                writes.append(set_aside_write(snapshot, error))
            continue
        if task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_OTHERS:
            yield WaitingTask(snapshot, task)


def _after_failure(waiting: WaitingTask, text: str, ended: set[str]) -> dict[str, Any]:
    """Return the fields of a parent after children were given up, as its policy says; *ended* never run again."""
    task = waiting.task
    match task.on_child_failure:
        case ChildFailure.WAIT:
            counted = waiting.children & ended
        case ChildFailure.REPLAN:
            counted = waiting.children
        case ChildFailure.FAIL:
            summary = truncate(f"{text}. Retry runs this task with what there is", MAX_STORED_SUMMARY_CHARS)
            return unleased_fields(task, TaskStatus.BLOCKED, StatusReason.ESCALATED, summary)
    fresh = sorted(counted - set(task.gave_up))
    left = max(0, task.waiting_on - len(fresh))
    fields = _fewer(task, len(fresh)) | {"gave_up": [*task.gave_up, *fresh]}
    return fields | ({"summary": _waiting_summary(left, text)} if left else {})


def _fewer(task: Task, count: int) -> dict[str, Any]:
    """Return the fields of a task that waits for *count* tasks fewer: queued if none is left."""
    left = max(0, task.waiting_on - count)
    if left:
        return {"waiting_on": left, "updated_at": SERVER_TIME}
    delegates = task.status_reason is StatusReason.DELEGATING
    ready = "all its tasks ended, waits for an agent" if delegates else "dependencies met, waits for an agent"
    return queued_fields(task, ready) | {"waiting_on": 0}


def _waiting_summary(count: int, text: str) -> str:
    return truncate(f"waits for {count} task(s); {text}", MAX_STORED_SUMMARY_CHARS)


def _short(task: Task) -> str:
    return task.task_id[:SHORT_ID_CHARS]
