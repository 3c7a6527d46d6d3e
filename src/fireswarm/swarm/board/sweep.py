"""Sweep: any worker of a role applies what is due by time. There is no coordinator and no leader.

A sweep returns expired leases to the queue, ends pauses and enforces deadlines. Each task has a ``sweep_at`` time, so
a sweep reads one document when nothing is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fireswarm.contracts.ports import DELETE_FIELD, Clock, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import WAITS_FOR_TIME, StatusReason, Task, TaskStatus
from fireswarm.errors import Conflict, InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import next_sweep
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board import hand_written
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import end_run_write, queued_fields, unleased_fields


@dataclass(frozen=True, slots=True)
class Swept:
    """Result of a sweep: ids of the tasks queued and blocked, and the time of the next due task."""

    queued: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    next_due: datetime | None = None


async def sweep(board: BoardContext, role: str) -> Swept:
    """Reclaim expired leases, end pauses and enforce deadlines of *role*. Safe to run on all workers at once."""
    store, clock, rules = board.store, board.clock, board.rules
    head = await store.query(queries.next_due(role))
    if not head:
        return Swept()
    due_at: datetime = (head[0].data or {})["sweep_at"]
    now = clock.now()
    if due_at > now:
        return Swept(next_due=due_at)
    requeued: list[str] = []
    blocked: list[str] = []
    for snapshot in await store.query(queries.due(role, now, rules.sweep_batch)):
        status = await _take_up(store, now, snapshot, clock)
        if status is TaskStatus.QUEUED:
            requeued.append(snapshot.id)
        elif status is TaskStatus.BLOCKED:
            blocked.append(snapshot.id)
    return Swept(tuple(requeued), tuple(blocked), next_due=now)


async def _take_up(store: Store, now: datetime, snapshot: Snapshot, clock: Clock) -> TaskStatus | None:
    """Apply one due task and return its new status; None after a conflict or if only its ``sweep_at`` changed."""
    try:
        task = parse_task_snapshot(snapshot)
    except InvalidInput:
        await hand_written.repair(store, clock, snapshot)
        return TaskStatus.BLOCKED
    writes = _due_writes(task, snapshot, now)
    try:
        await store.commit(writes)
    except Conflict:
        return None  # another worker was faster, or the holder renewed the lease
    first = writes[0]
    fields: Any = first.data if isinstance(first, Update) else {}
    return TaskStatus(fields["status"]) if "status" in fields else None


def _due_writes(task: Task, snapshot: Snapshot, now: datetime) -> list[Write]:
    """Return the writes for a due task: reclaimed, deadline missed, queued again, or only a new ``sweep_at``."""
    expired = task.status is TaskStatus.IN_PROGRESS and (task.lease is None or task.lease.expires_at <= now)
    if expired:
        return _reap(task, snapshot)
    if not task.status.terminal and task.status is not TaskStatus.IN_PROGRESS and task.deadline <= now:
        return [Update(snapshot.path, _deadline_missed(task), snapshot.update_time)]
    if task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_TIME and not _still_pauses(task, now):
        fields = queued_fields(task, "the pause is over, waits for an agent")
        return [Update(snapshot.path, fields, snapshot.update_time)]
    due = next_sweep(task.status, task.status_reason, task.lease, task.not_before, task.deadline)
    return [Update(snapshot.path, {"sweep_at": due or DELETE_FIELD}, snapshot.update_time)]


def _still_pauses(task: Task, now: datetime) -> bool:
    return task.not_before is not None and task.not_before > now


def _reap(task: Task, snapshot: Snapshot) -> list[Write]:
    """Return the writes that reclaim an expired lease.

    An expired lease counts as an attempt, so that a task that crashes its workers is not retried forever.
    """
    attempt = task.attempt + 1
    holder = task.lease.owner_agent_id if task.lease else "an unknown agent"
    error = f"the lease of {holder} (epoch {task.epoch}) expired without a renewal: the process died or hung"
    if attempt >= task.max_attempts:
        summary = f"gave up after {attempt} attempts: {error}"
        fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEAD_LETTER, summary)
    else:
        fields = queued_fields(task, f"reclaimed: {error}")
    writes: list[Write] = [Update(snapshot.path, fields | {"attempt": attempt, "error": error}, snapshot.update_time)]
    if task.lease is not None:
        writes.append(end_run_write(task, task.lease, RunStatus.TIMEOUT, error))
    return writes


def _deadline_missed(task: Task) -> dict[str, Any]:
    summary = f"not finished by its deadline, {task.deadline.isoformat()}"
    return unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEADLINE_EXCEEDED, summary)


async def admit_hand_written(board: BoardContext, role: str) -> int:
    """Complete queued documents that the claim query cannot return because they lack a field it sorts by.

    Returns the number of completed documents.
    """
    repaired = 0
    for snapshot in await board.store.query(queries.queued_tasks(role, board.rules.sweep_batch)):
        data = snapshot.data or {}
        if any(data.get(name) is None for name in ("priority", "deadline", "created_at")):
            await hand_written.repair(board.store, board.clock, snapshot)
            repaired += 1
    return repaired
