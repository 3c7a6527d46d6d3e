"""Sweep: any peer of a role takes up what time has made due. No coordinator, no leader.

Expired leases go back to the queue, back-offs end, deadlines bite. Each task carries ``sweep_at``, so a
sweep reads one document when nothing is due.
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
    """What a sweep did: tasks put back into the queue, tasks blocked, and when the next thing is due."""

    queued: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    next_due: datetime | None = None


async def sweep(board: BoardContext, role: str) -> Swept:
    """Reap expired leases, end back-offs and enforce deadlines of *role*; safe to run on all peers at once."""
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
    try:
        task = parse_task_snapshot(snapshot)
    except InvalidInput:
        await hand_written.repair(store, clock, snapshot)
        return TaskStatus.BLOCKED
    writes = _due_writes(task, snapshot, now)
    try:
        await store.commit(writes)
    except Conflict:
        return None  # a peer was faster, or the holder renewed after all
    first = writes[0]
    fields: Any = first.data if isinstance(first, Update) else {}
    return TaskStatus(fields["status"]) if "status" in fields else None


def _due_writes(task: Task, snapshot: Snapshot, now: datetime) -> list[Write]:
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
    """A lost lease counts as an attempt, so that a task that kills its workers does not kill them for ever."""
    attempt = task.attempt + 1
    holder = task.lease.owner_agent_id if task.lease else "nobody"
    error = f"the lease of {holder} (epoch {task.epoch}) ran out without a renewal: the process died or stood still"
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
    """Complete queued documents that the claim query cannot see, since they lack a field it orders by.

    Returns how many.
    """
    repaired = 0
    for snapshot in await board.store.query(queries.queued_tasks(role, board.rules.sweep_batch)):
        data = snapshot.data or {}
        if any(data.get(name) is None for name in ("priority", "deadline", "created_at")):
            await hand_written.repair(board.store, board.clock, snapshot)
            repaired += 1
    return repaired
