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

from fireswarm.contracts.ports import DELETE_FIELD, Snapshot, Update, Write
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, WAITS_FOR_TIME, StatusReason, Task, TaskStatus
from fireswarm.runs.sinks.run_ends import describe_expiry
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.runs.steps import STEP_FINISHED
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import next_sweep
from fireswarm.storage.documents.paths import run_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.by_hand.adopt import adopt
from fireswarm.swarm.board.by_hand.set_aside import work_on_document
from fireswarm.swarm.board.dependents import commit_with_dependents
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import count_failure, end_run_write, lost_at, queued_fields, unleased_fields
from fireswarm.swarm.board.waits import check_waiting

MAX_PAGES = 10
"""Pages of queued documents that one sweep reads to find those that no claim can see."""


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
    batch = board.rules.sweep_batch + min(len(board.aside.left_alone), board.rules.sweep_batch)
    due = queries.due(role, now, batch) if isinstance(due_at, datetime) else queries.next_due(role, batch)
    snapshots = [item for item in await store.query(due) if _is_due(item, now) and item.id not in held]
    if not reclaim:
        snapshots = [item for item in snapshots if (item.data or {}).get("status") != TaskStatus.IN_PROGRESS.value]
    snapshots = [item for item in snapshots if not board.aside.leaves(item)]
    return await _check_all(board, snapshots, now) if snapshots else Swept()


def _is_due(snapshot: Snapshot, now: datetime) -> bool:
    """Return True if ``sweep_at`` has passed, or has another type, which only a person or another program writes."""
    sweep_at = (snapshot.data or {}).get("sweep_at")
    return not isinstance(sweep_at, datetime) or sweep_at <= now


async def reclaim_expired(board: BoardContext, role: str, *, held: Collection[str] = ()) -> Swept:
    """Reclaim tasks with an expired lease and no ``sweep_at``: other programs claimed them."""
    now = board.clock.now()
    expired = await board.store.query(queries.expired_leases(role, now, board.rules.sweep_batch))
    return await _check_all(board, [item for item in expired if item.id not in held], now)


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
    if task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_OTHERS and task.deadline > now:
        return await check_waiting(board, snapshot, task, now)
    first, *others = await _due_writes(board, task, snapshot, now)
    fields: Any = first.data if isinstance(first, Update) else {}
    if "status" not in fields:
        await board.store.commit([first])
        return None
    status = TaskStatus(fields["status"])
    reason = StatusReason(fields["status_reason"]) if fields["status_reason"] else None
    await commit_with_dependents(board, task, [first, *others], status, reason, fields["summary"])
    return status


async def _due_writes(board: BoardContext, task: Task, snapshot: Snapshot, now: datetime) -> list[Write]:
    """Return the writes for a due task: reclaimed, deadline missed, queued again, or only a new ``sweep_at``."""
    expired = task.status is TaskStatus.IN_PROGRESS and (task.lease is None or task.lease.expires_at <= now)
    if expired:
        return await _reap(board, task, snapshot)
    if not task.status.terminal and task.status is not TaskStatus.IN_PROGRESS and task.deadline <= now:
        return [Update(snapshot.path, _deadline_missed(task), snapshot.update_time)]
    if task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_TIME and not _still_pauses(task, now):
        fields = queued_fields(task, "the pause is over, waits for an agent")
        return [Update(snapshot.path, fields, snapshot.update_time)]
    due = next_sweep(task.status, task.status_reason, task.lease, task.not_before, task.deadline)
    return [Update(snapshot.path, {"sweep_at": due or DELETE_FIELD}, snapshot.update_time)]


def _still_pauses(task: Task, now: datetime) -> bool:
    return task.not_before is not None and task.not_before > now


async def _reap(board: BoardContext, task: Task, snapshot: Snapshot) -> list[Write]:
    """Return the writes that reclaim an expired lease.

    An expired lease counts like a failed turn, see ``count_failure``. Costs one read.
    """
    if task.lease is None:  # by hand: no agent has it, and none lost it
        return [Update(snapshot.path, queued_fields(task, "nobody holds it, waits for an agent"), snapshot.update_time)]
    run = await board.store.get(run_path(task.run_id(task.lease.epoch)))
    events = await read_events(board.store, run)
    went_on = any(event.get("type") == STEP_FINISHED for event in events)
    counts = count_failure(task, board.rules, went_on=went_on)
    attempt = counts["attempt"]
    error = describe_expiry(task.lease)
    if attempt >= task.max_attempts and attempt > task.attempt:
        summary = f"gave up after {attempt} attempts: {error}"
        fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEAD_LETTER, summary)
    else:
        fields = queued_fields(task, f"reclaimed: {error}")
    fields |= {**counts, "error": error}
    fields["checkpoint_uri"] = run_path(task.run_id(task.lease.epoch))
    return [
        Update(snapshot.path, fields, snapshot.update_time),
        end_run_write(task, task.lease, RunStatus.TIMEOUT, error, lost_at(board, task, task.lease, events)),
    ]


def _deadline_missed(task: Task) -> dict[str, Any]:
    summary = f"not finished by its deadline, {task.deadline.isoformat()}"
    return unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEADLINE_EXCEEDED, summary)


async def admit_hand_written(board: BoardContext, role: str, after: str = "") -> tuple[int, str]:
    """Adopt the queued documents that no claim can see: they lack a sort field, or store it in another type.

    Two counts tell whether there are any, at one read for each 1,000 queued tasks. If so, up to `MAX_PAGES` pages of
    queued documents are read, from the id *after* on. Returns the number of adopted documents, and the id from which
    the next call goes on, or "".
    """
    store = board.store
    hidden = await store.count(queries.queued_tasks(role)) - await store.count(queries.claimable(role))
    adopted = 0
    for _ in range(MAX_PAGES):
        if adopted >= hidden:
            return adopted, ""
        page = await store.query(queries.queued_after(role, after, board.rules.sweep_batch))
        for snapshot in page:
            if _is_hidden(snapshot):
                await work_on_document(board, snapshot, partial(_adopt, board, snapshot))
                adopted += 1
        after = page[-1].id if len(page) == board.rules.sweep_batch else ""
    return adopted, after


def _is_hidden(snapshot: Snapshot) -> bool:
    data = snapshot.data or {}
    priority = data.get("priority")
    sorted_by = isinstance(priority, (int, float)) and priority >= 1
    return not sorted_by or any(data.get(name) is None for name in ("deadline", "created_at"))


async def _adopt(board: BoardContext, snapshot: Snapshot) -> None:
    await adopt(board, parse_task_snapshot(snapshot), snapshot)


async def requeue_unheld(board: BoardContext, role: str, held: Collection[str] = ()) -> int:
    """Queue the tasks in progress that no agent holds: a person removed the lease, or wrote the status without one.

    Two counts tell whether there are any. Returns the number of queued tasks.
    """
    store, now = board.store, board.clock.now()
    running = await store.count(queries.in_progress(role))
    if running <= await store.count(queries.with_lease(role)):
        return 0
    unheld = [item for item in await store.query(queries.in_progress(role)) if item.id not in held]
    swept = await _check_all(board, [item for item in unheld if _lease_of(item) is None], now)
    return len(swept.queued)


def _lease_of(snapshot: Snapshot) -> Any:
    lease: Any = (snapshot.data or {}).get("lease")
    return lease.get("expires_at") if isinstance(lease, dict) else None
