"""Sweep: any worker of a role makes the changes that are due by time. There is no coordinator and no leader.

A sweep returns expired leases to the queue, ends pauses and enforces deadlines. Each task has a ``sweep_at`` time, so
a sweep reads one document when nothing is due.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from fireswarm.contracts.ports import DELETE_FIELD, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import WAITS_FOR_TIME, StatusReason, Task, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import next_sweep
from fireswarm.storage.documents.paths import run_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.by_hand.adopt import adopt
from fireswarm.swarm.board.by_hand.set_aside import work_on_document
from fireswarm.swarm.board.dependents import MAX_WRITTEN, commit_with_dependents, count_awaited
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import end_run_write, queued_fields, unleased_fields


@dataclass(frozen=True, slots=True)
class Swept:
    """Result of a sweep: ids of the queued and blocked tasks, and the time of the next due task."""

    queued: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    next_due: datetime | None = None


async def sweep(board: BoardContext, role: str, *, held: Collection[str] = (), reclaim: bool = True) -> Swept:
    """Reclaim expired leases, end pauses and enforce deadlines of *role*. Safe to run on all workers at once.

    Tasks in *held* are the caller's own: the caller renews or settles them. Without *reclaim*, no lease is reclaimed:
    after an outage of the store, leases have expired that their holders could not renew.
    """
    store = board.store
    head = await store.query(queries.next_due(role))
    now = board.clock.now()  # after the read, which observes the store's time
    if not head:
        return Swept()
    due_at = (head[0].data or {}).get("sweep_at")
    if isinstance(due_at, datetime) and due_at > now:
        return Swept(next_due=due_at)
    batch = board.rules.sweep_batch
    due = queries.due(role, now, batch) if isinstance(due_at, datetime) else queries.next_due(role, batch)
    snapshots = [item for item in await store.query(due) if _is_due(item, now) and item.id not in held]
    if not reclaim:
        snapshots = [item for item in snapshots if (item.data or {}).get("status") != TaskStatus.IN_PROGRESS.value]
    return await _check_all(board, snapshots, now)


def _is_due(snapshot: Snapshot, now: datetime) -> bool:
    """Return True if ``sweep_at`` has passed, or has another type, which only a person or another program writes."""
    sweep_at = (snapshot.data or {}).get("sweep_at")
    return not isinstance(sweep_at, datetime) or sweep_at <= now


async def reclaim_expired(board: BoardContext, role: str, *, held: Collection[str] = ()) -> Swept:
    """Reclaim tasks with an expired lease and no ``sweep_at``: other programs claimed them."""
    now = board.clock.now()
    expired = await board.store.query(queries.expired_leases(role, now, board.rules.sweep_batch))
    return await _check_all(board, [item for item in expired if item.id not in held], now)


async def count_awaited_by_role(board: BoardContext, role: str) -> None:
    """Repeat the counts for tasks that wait for many: a worker may have died between its commit and its count."""
    many = queries.waiting_for_many(role, MAX_WRITTEN, board.rules.sweep_batch)
    for snapshot in await board.store.query(many):
        await work_on_document(board, snapshot, partial(count_awaited, board, snapshot.id))


async def _check_all(board: BoardContext, snapshots: Sequence[Snapshot], now: datetime) -> Swept:
    queued: list[str] = []
    blocked: list[str] = []
    for snapshot in snapshots:
        status = await work_on_document(board, snapshot, partial(check_due, board, snapshot, now))
        if status is TaskStatus.QUEUED:
            queued.append(snapshot.id)
        elif status is TaskStatus.BLOCKED:
            blocked.append(snapshot.id)
    return Swept(tuple(queued), tuple(blocked), next_due=now)


async def check_due(board: BoardContext, snapshot: Snapshot, now: datetime) -> TaskStatus | None:
    """Process one due task and return its new status; None if only its ``sweep_at`` changed."""
    task = parse_task_snapshot(snapshot)
    first, *others = _due_writes(task, snapshot, now)
    fields: Any = first.data if isinstance(first, Update) else {}
    if "status" not in fields:
        await board.store.commit([first])
        return None
    status = TaskStatus(fields["status"])
    reason = StatusReason(fields["status_reason"]) if fields["status_reason"] else None
    await commit_with_dependents(board, task, [first, *others], status, reason, fields["summary"])
    return status


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
    fields |= {"attempt": attempt, "error": error}
    if task.lease is not None:
        fields["checkpoint_uri"] = run_path(task.run_id(task.lease.epoch))
    writes: list[Write] = [Update(snapshot.path, fields, snapshot.update_time)]
    if task.lease is not None:
        writes.append(end_run_write(task, task.lease, RunStatus.TIMEOUT, error))
    return writes


def _deadline_missed(task: Task) -> dict[str, Any]:
    summary = f"not finished by its deadline, {task.deadline.isoformat()}"
    return unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEADLINE_EXCEEDED, summary)


async def admit_hand_written(board: BoardContext, role: str) -> int:
    """Adopt queued documents that the claim query cannot return for lack of a sort field.

    Returns the number of documents.
    """
    admitted = 0
    for snapshot in await board.store.query(queries.queued_tasks(role, board.rules.sweep_batch)):
        data = snapshot.data or {}
        if any(data.get(name) is None for name in ("priority", "deadline", "created_at")):
            await work_on_document(board, snapshot, partial(_adopt, board.store, snapshot))
            admitted += 1
    return admitted


async def _adopt(store: Store, snapshot: Snapshot) -> None:
    await adopt(store, parse_task_snapshot(snapshot), snapshot)
