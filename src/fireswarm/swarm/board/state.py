"""The fields of a task's state. They are always written together, so they cannot contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from fireswarm.contracts.limits import MAX_ERROR_CHARS, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Merge, Snapshot, Update
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import Lease, StatusReason, Task, TaskStatus
from fireswarm.runs.sinks.run_ends import last_renewal, last_sign
from fireswarm.runs.sinks.run_reader import Event
from fireswarm.storage.documents.build import next_check, next_sweep, run_identity
from fireswarm.storage.documents.paths import run_path
from fireswarm.swarm.board.rules import BoardContext, BoardRules

SET_ASIDE: dict[str, Any] = {
    "status": TaskStatus.BLOCKED.value,
    "status_reason": StatusReason.DEAD_LETTER.value,
    "lease": None,
    "sweep_at": DELETE_FIELD,
}
"""State of a document that claims and sweeps do not read again."""


def unleased_fields(
    task: Task,
    status: TaskStatus,
    reason: StatusReason | None,
    summary: str,
    *,
    not_before: datetime | None = None,
    deadline: datetime | None = None,
) -> dict[str, Any]:
    """Return the state of a task without a lease. ``deadline`` replaces the task's deadline, unless omitted."""
    fields: dict[str, Any] = {
        "status": status.value,
        "status_reason": None if reason is None else reason.value,
        "summary": truncate(summary, MAX_STORED_SUMMARY_CHARS),
        "lease": None,
        "not_before": not_before,
        "sweep_at": next_sweep(status, reason, None, not_before, deadline or task.deadline) or DELETE_FIELD,
        "updated_at": SERVER_TIME,
        "open": DELETE_FIELD if status.terminal else True,
    }
    if status.terminal:
        fields["ended_at"] = SERVER_TIME
    return fields


def waiting_fields(task: Task, reason: StatusReason, summary: str, now: datetime) -> dict[str, Any]:
    """Return the state of a task that waits for others: each end queues it, and sweeps check that none was missed."""
    return unleased_fields(task, TaskStatus.BLOCKED, reason, summary) | {
        "sweep_at": next_check(now, now, task.deadline)
    }


def first_line(text: str) -> str:
    """Return the first line of an error, for a summary. The full text is in ``error`` and in the journal."""
    return text.split("\n", 1)[0]


def queued_fields(task: Task, summary: str) -> dict[str, Any]:
    """Return the state of a task that waits for an agent."""
    return unleased_fields(task, TaskStatus.QUEUED, None, summary)


def count_failure(task: Task, rules: BoardRules, *, went_on: bool) -> dict[str, Any]:
    """Return the counters of a task whose turn failed or was lost.

    It costs an attempt unless the turn *went_on*: unless it finished a step that no earlier one had finished. Then it
    is a setback, and the next turn goes on behind that step; of these, ``max_setbacks`` are free.
    """
    free = went_on and task.setbacks < rules.max_setbacks
    return {"attempt": task.attempt + (not free), "setbacks": task.setbacks + free}


def end_run_write(task: Task, lease: Lease, status: RunStatus, error: str, lost_at: datetime | None = None) -> Merge:
    """Return the write that ends a run whose holder cannot end it: it was asked to stop, or died after *lost_at*."""
    identity = run_identity(task, lease.epoch, lease.owner_agent_id, lease.claimed_at or task.updated_at)
    ended = {"status": status.value, "error": error, "summary": truncate(error, MAX_STORED_SUMMARY_CHARS)}
    times = {"ended_at": SERVER_TIME} if lost_at is None else {"ended_at": lost_at, "noticed_at": SERVER_TIME}
    return Merge(run_path(task.run_id(lease.epoch)), identity | ended | times)


def lost_at(board: BoardContext, task: Task, lease: Lease, events: Iterable[Event]) -> datetime:
    """Return when the holder of an expired lease is known to have worked last; *events* are those of its run."""
    renewed = last_renewal(task, lease, board.rules.lease_seconds)
    return last_sign(events, board.clock.now(), lease.claimed_at or task.updated_at, renewed)


def is_set_aside(data: Mapping[str, Any]) -> bool:
    """Return True if a task document is dead-lettered and no sweep will read it."""
    return (
        data.get("status") == TaskStatus.BLOCKED.value
        and data.get("status_reason") == StatusReason.DEAD_LETTER.value
        and data.get("lease") is None
        and "sweep_at" not in data
    )


def set_aside_write(snapshot: Snapshot, error: Exception) -> Update:
    """Return the write that sets the document aside; fails if the document has changed."""
    text = str(error) or type(error).__name__
    advice = "" if "`swarm retry " in text else " Correct it, then set status to queued."
    fields: dict[str, Any] = {
        **SET_ASIDE,
        "summary": truncate(f"set aside: {text}.{advice}", MAX_STORED_SUMMARY_CHARS),
        "error": truncate(text, MAX_ERROR_CHARS),
        "updated_at": SERVER_TIME,
    }
    return Update(snapshot.path, fields, snapshot.update_time)


def shortest_set_aside_write(snapshot: Snapshot) -> Update:
    """Return the write that sets aside a document that is too large for the reason."""
    return Update(snapshot.path, {**SET_ASIDE, "summary": "too large", "error": DELETE_FIELD}, snapshot.update_time)
