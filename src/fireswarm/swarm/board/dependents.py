"""Notify dependents in the commit that finishes, gives up or requeues a task.

The end of a task is written to every document that waits for it, and Firestore sustains about one write a second to one
document. A task that waits for more than `MAX_WRITTEN` others is therefore not written at each end: after the commit,
an aggregation query counts its unfinished tasks, and the task is written when none is left. Until then its
``waiting_on`` does not change. A sweep repeats the count in case a worker died between commit and count.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from fireswarm.contracts.base import count_noun, is_document_id
from fireswarm.contracts.limits import MAX_STORED_SUMMARY_CHARS, shown_id, truncate
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.task import (
    GIVEN_UP,
    WAITS_FOR_OTHERS,
    ChildFailure,
    StatusReason,
    Task,
    TaskStatus,
)
from fireswarm.errors import Conflict, InvalidInput, NewerDocument, StoreError, StoreRejected
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import (
    first_line,
    is_set_aside,
    queued_fields,
    set_aside_write,
    shortest_set_aside_write,
    unleased_fields,
)

MAX_WRITTEN = 8
"""Maximum number of awaited tasks at whose ends a task is written; above it, they are counted instead."""

_log = logging.getLogger(__name__)


class Awaited(Protocol):
    """A task that others wait for."""

    @property
    def task_id(self) -> str:
        """Its document id."""
        ...

    @property
    def dependents(self) -> Sequence[str]:
        """Ids of the tasks that wait for it."""
        ...


@dataclass(frozen=True, slots=True)
class UnreadableTask:
    """A task with an unreadable document: its id, and the tasks that wait for it."""

    task_id: str
    dependents: Sequence[str]


@dataclass(slots=True)
class WaitingTask:
    """A task that waits for others, as it was read, and its children that were given up."""

    snapshot: Snapshot
    task: Task
    children: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Told:
    """The writes that update the dependents of a task, and the work after their commit.

    *to_count* are the dependents to count; *unreadable* are documents to set aside.
    """

    writes: list[Write] = field(default_factory=list)
    to_count: list[str] = field(default_factory=list)
    unreadable: list[tuple[Snapshot, InvalidInput]] = field(default_factory=list)


async def commit_with_dependents(
    board: BoardContext,
    task: Task,
    writes: Sequence[Write],
    status: TaskStatus,
    reason: StatusReason | None = None,
    summary: str = "",
) -> None:
    """Commit *writes*, which change *task* to *status*, together with the updates of its dependents.

    Each dependent must be unchanged. Costs one read and one write per dependent, or three reads for a dependent that
    waits for more than `MAX_WRITTEN` tasks; a task without dependents costs nothing. A task that was given up costs one
    more read for each task that depends on it, directly or not. Raises Conflict.
    """
    told = await _tell(board.store, task, status, reason, summary)
    await board.store.commit([*writes, *told.writes])
    await _follow_up(board, told)


async def _follow_up(board: BoardContext, told: Told) -> None:
    """Do the work that the commit left. The commit is already durable; if counting fails, the next sweep repeats it."""
    for task_id in told.to_count:
        try:
            await count_awaited(board, task_id)
        except (StoreError, Conflict, InvalidInput) as error:
            _log.warning("the tasks that %s waits for could not be counted: %s", task_id, error)
    for snapshot, fault in told.unreadable:
        try:
            await set_aside(board, snapshot, fault)
        except StoreError as error:
            _log.warning("%s could not be set aside: %s", snapshot.path, error)


async def _tell(store: Store, task: Task, status: TaskStatus, reason: StatusReason | None, summary: str) -> Told:
    if not task.dependents:
        return Told()
    if status is TaskStatus.DONE:
        return await _tell_of_end(store, task)
    if status is TaskStatus.CANCELED:
        return await tell_of_loss(store, task, f"task {shown_id(task.task_id)} was canceled", "was canceled")
    if status is TaskStatus.BLOCKED and reason in GIVEN_UP:
        text = f"task {shown_id(task.task_id)} was given up: {first_line(summary)}"
        return await _tell_of_failure(store, task, text, lost="")
    return Told()


async def _tell_of_end(store: Store, ended: Task) -> Told:
    """Return the writes that count a finished task; a task that was given up before is already counted."""
    told = Told()
    async for waiting in _read_waiting(store, ended.dependents, told):
        if waiting.task.waiting_on > MAX_WRITTEN:
            told.to_count.append(waiting.task.task_id)
        elif ended.task_id not in waiting.task.gave_up and waiting.task.awaits_child(ended.task_id):
            told.writes.append(Update(waiting.snapshot.path, fewer(waiting.task, 1), waiting.snapshot.update_time))
    return told


async def count_awaited(board: BoardContext, task_id: str) -> bool:
    """Count the tasks that a task waits for, and queue it if none is left. Returns True if this call queued it."""
    store = board.store
    for _ in range(board.rules.settle_attempts):
        snapshot = await store.get(task_path(task_id))
        if snapshot.data is None:
            return False
        task = parse_task_snapshot(snapshot)
        if task.status is not TaskStatus.BLOCKED or task.status_reason not in WAITS_FOR_OTHERS:
            return False
        if await _count_left(store, task):
            return False
        try:
            await store.commit([Update(snapshot.path, fewer(task, task.waiting_on), snapshot.update_time)])
        except Conflict:
            continue
        return True
    return False  # a sweep counts again


async def _count_left(store: Store, task: Task) -> int:
    """Return the number of tasks that *task* still waits for, neither done nor given up.

    Two billed reads for 1,000 tasks; one for each task if it awaits some of its children only.
    """
    if task.awaits:
        read = await store.get_many([task_path(child) for child in task.awaits if child not in task.gave_up])
        return sum((child.data or {}).get("status") != TaskStatus.DONE for child in read)
    registered = await store.count(queries.awaited_by(task.task_id))
    done = await store.count(queries.awaited_by(task.task_id, status=TaskStatus.DONE.value))
    deleted = max(0, len(awaited_ids(task)) - registered)  # a sweep decides what becomes of the task
    left = registered + deleted - done
    if left > len(task.gave_up):
        return left - len(task.gave_up)  # at least
    given_up = await store.get_many([task_path(child_id) for child_id in task.gave_up])
    left -= min(deleted, sum(child.data is None for child in given_up))
    return left - sum((child.data or {}).get("status") not in (None, TaskStatus.DONE) for child in given_up)


def awaited_ids(task: Task) -> list[str]:
    """Return the ids of the tasks for which a blocked task waits or waited."""
    if task.status_reason is StatusReason.DELEGATING:
        return [*(task.awaits or task.children)]
    return [*task.depends_on, *([task.duplicate_of] if task.duplicate_of else [])]


async def set_aside(board: BoardContext, snapshot: Snapshot, error: Exception) -> bool:
    """Block an unusable document, with *error* as the reason, and notify the tasks that wait for it.

    Returns False if the document changed, or is set aside already. Claims and sweeps do not read the document again,
    since it has neither a lease nor a ``sweep_at``.
    """
    if snapshot.data is None or is_set_aside(snapshot.data):
        return False
    if isinstance(error, NewerDocument):
        board.aside.leave(snapshot, error)
        return False
    shortest = [shortest_set_aside_write(snapshot)]
    for commit in (partial(_commit_set_aside, board, snapshot, error), partial(board.store.commit, shortest)):
        try:
            await commit()
        except Conflict:
            return False
        except StoreRejected as refused:  # a document near 1 MiB has no room for the reason
            _log.warning("%s could not be set aside: %s", snapshot.path, refused)
        else:
            _log.warning("%s was set aside: %s", snapshot.path, error)
            board.aside.add(snapshot.path, error)
            return True
    return False


async def _commit_set_aside(board: BoardContext, snapshot: Snapshot, error: Exception) -> None:
    stored: Any = (snapshot.data or {}).get("dependents")
    ids = [item for item in stored if is_document_id(item)] if isinstance(stored, list) else []
    text = f"task {shown_id(snapshot.id)} was set aside: {first_line(str(error))}"
    told = await _tell_of_failure(board.store, UnreadableTask(snapshot.id, ids), text, lost="") if ids else Told()
    await board.store.commit([set_aside_write(snapshot, error), *told.writes])
    await _follow_up(board, told)


async def tell_of_loss(store: Store, lost: Awaited, text: str, how: str) -> Told:
    """Return the writes that tell the dependents of a task which will never run: *how* it was lost."""
    return await _tell_of_failure(store, lost, text, lost=how)


async def commit_told(board: BoardContext, told: Told) -> None:
    """Commit the updates of dependents by themselves. Raises Conflict."""
    if told.writes:
        await board.store.commit(told.writes)
    await _follow_up(board, told)


async def _tell_of_failure(store: Store, failed: Awaited, text: str, *, lost: str) -> Told:
    """Return the writes that note the failure on every dependent of *failed*, and resume or fail their parents.

    *lost* says how a task was lost that will never run; what depends on it can never run as planned, so a person has to
    decide.
    """
    told = Told()
    writes = told.writes
    stuck, parents = await _find_stuck(store, failed, told)
    for waiting in stuck:
        if lost and waiting.task.duplicate_of == failed.task_id:
            ready = f"task {failed.task_id} with the same work {lost}, this one does it"
            fields = queued_fields(waiting.task, ready) | {"waiting_on": 0}
            fields |= {"duplicate_of": DELETE_FIELD, "key_id": DELETE_FIELD}  # the next claim adopts it again
        elif lost and failed.task_id in waiting.task.depends_on:
            summary = f"depends on task {failed.task_id}, which {lost}: retry runs this task anyway, cancel ends it"
            fields = unleased_fields(waiting.task, TaskStatus.BLOCKED, StatusReason.ESCALATED, summary)
        else:
            fields = {"summary": _waiting_summary(waiting.task.waiting_on, text), "updated_at": SERVER_TIME}
        writes.append(Update(waiting.snapshot.path, fields, waiting.snapshot.update_time))
    for waiting in parents:
        ended = {failed.task_id} if lost else set[str]()
        writes.append(Update(waiting.snapshot.path, _after_failure(waiting, text, ended), waiting.snapshot.update_time))
        if waiting.task.waiting_on > MAX_WRITTEN:
            told.to_count.append(waiting.task.task_id)
    return told


async def tell_of_retry(store: Store, task: Task) -> list[Write]:
    """Return the writes that make the waiting parents of a retried task wait for it again."""
    if task.status_reason not in GIVEN_UP or not task.dependents:
        return []
    writes: list[Write] = []
    stuck, parents = await _find_stuck(store, task, Told(writes))
    for waiting in stuck:
        fields = {"summary": f"waits for {count_noun(waiting.task.waiting_on, 'task')}", "updated_at": SERVER_TIME}
        writes.append(Update(waiting.snapshot.path, fields, waiting.snapshot.update_time))
    for waiting in parents:
        again = {each for each in waiting.children & set(waiting.task.gave_up) if waiting.task.awaits_child(each)}
        count = waiting.task.waiting_on
        if count <= MAX_WRITTEN:
            count += len(again)
        fields: dict[str, Any] = {
            "gave_up": [task_id for task_id in waiting.task.gave_up if task_id not in again],
            "waiting_on": count,
            "summary": f"waits for {count_noun(count, 'task')}",
            "updated_at": SERVER_TIME,
        }
        writes.append(Update(waiting.snapshot.path, fields, waiting.snapshot.update_time))
    return writes


async def _find_stuck(store: Store, failed: Awaited, told: Told) -> tuple[list[WaitingTask], list[WaitingTask]]:
    """Return the tasks that depend on *failed*, directly or not, and their parents."""
    stuck: dict[str, WaitingTask] = {}
    parents: dict[str, WaitingTask] = {}
    pending: list[Awaited] = [failed]
    while pending:
        current = pending.pop()
        async for waiting in _read_waiting(store, current.dependents, told):
            dependent = waiting.task
            if current.task_id in dependent.children:
                parents.setdefault(dependent.task_id, waiting).children.add(current.task_id)
            elif dependent.task_id not in stuck:
                stuck[dependent.task_id] = waiting
                pending.append(dependent)
    return list(stuck.values()), list(parents.values())


async def _read_waiting(store: Store, ids: Iterable[str], told: Told) -> AsyncIterator[WaitingTask]:
    """Yield the tasks of *ids* that wait for others.

    An unreadable one is set aside later, and does not stop the others.
    """
    for snapshot in await store.get_many([task_path(task_id) for task_id in dict.fromkeys(ids)]):
        if snapshot.data is None:
            continue
        try:
            task = parse_task_snapshot(snapshot)
        except InvalidInput as error:
            if snapshot.data.get("status") == TaskStatus.BLOCKED:
                told.unreadable.append((snapshot, error))
            continue
        if task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_OTHERS:
            yield WaitingTask(snapshot, task)


def _after_failure(waiting: WaitingTask, text: str, ended: set[str]) -> dict[str, Any]:
    """Return a parent's fields after children were given up, by its policy; tasks in *ended* never run again."""
    task = waiting.task
    awaited = {each for each in waiting.children if task.awaits_child(each)}
    match task.on_child_failure:
        case ChildFailure.WAIT:
            counted = awaited & ended
        case ChildFailure.REPLAN if task.wakes_on_failure and waiting.children - set(task.gave_up):
            gave_up = [*task.gave_up, *sorted(waiting.children - set(task.gave_up))]
            return queued_fields(task, f"{text}: its planner decides") | {"waiting_on": 0, "gave_up": gave_up}
        case ChildFailure.REPLAN:
            counted = awaited
        case ChildFailure.FAIL:
            summary = truncate(f"{text}. Retry runs this task with the available results", MAX_STORED_SUMMARY_CHARS)
            return unleased_fields(task, TaskStatus.BLOCKED, StatusReason.ESCALATED, summary)
    fresh = sorted(counted - set(task.gave_up))
    less = len(fresh) if task.waiting_on <= MAX_WRITTEN else 0  # otherwise it is counted after the commit
    left = max(0, task.waiting_on - less)
    fields = fewer(task, less) | {"gave_up": [*task.gave_up, *fresh]}
    return fields | ({"summary": _waiting_summary(left, text)} if left else {})


def fewer(task: Task, count: int) -> dict[str, Any]:
    """Return the fields of a task that waits for *count* fewer tasks: queued if none is left."""
    left = max(0, task.waiting_on - count)
    if left:
        return {"waiting_on": left, "updated_at": SERVER_TIME}
    delegates = task.status_reason is StatusReason.DELEGATING
    ready = "all its tasks ended, waits for an agent" if delegates else "dependencies met, waits for an agent"
    return queued_fields(task, ready) | {"waiting_on": 0}


def _waiting_summary(count: int, text: str) -> str:
    return truncate(f"waits for {count_noun(count, 'task')}; {text}", MAX_STORED_SUMMARY_CHARS)
