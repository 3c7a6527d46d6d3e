"""Find tasks that no worker will ever process: set aside, unreadable, or with an unknown status or role."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import WAITS_FOR_TIME, Task, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import is_set_aside

STATUSES = frozenset(TaskStatus)


class Stall(NamedTuple):
    """A task that is stuck, and how to continue it."""

    path: str
    reason: str


async def find_stalls(board: BoardContext, limit: int = 200) -> list[Stall]:
    """Return stalled tasks among the dead-lettered ones, those with an unknown status, and *limit* others."""
    snapshots: dict[str, Snapshot] = {}
    for query in (queries.dead_letters(limit), queries.unknown_statuses(limit), queries.some_tasks(limit)):
        for snapshot in await board.store.query(query):
            snapshots[snapshot.path] = snapshot
    return list(_stalls(snapshots.values(), board))


def _stalls(snapshots: Iterable[Snapshot], board: BoardContext) -> Iterable[Stall]:
    for snapshot in snapshots:
        data: Any = snapshot.data or {}
        if reason := _reason(snapshot, data, board):
            yield Stall(snapshot.path, reason)


def _reason(snapshot: Snapshot, data: Any, board: BoardContext) -> str:
    """Return why the task is stuck and what to do, or an empty string."""
    if is_set_aside(data) and str(data.get("summary")).startswith("set aside"):
        return str(data["summary"])
    if "status" not in data:
        return "it has no status: set status to queued"
    if data["status"] not in STATUSES:
        return f"its status is {data['status']!r}, which no agent looks for: set it to queued"
    if data["status"] in (TaskStatus.DONE, TaskStatus.CANCELED):
        return ""
    if "assigned_to" not in data:
        return f"it has no assigned_to: set it to one of {', '.join(sorted(board.roles))}"
    if data["assigned_to"] not in board.roles:
        return f"no role of this swarm has the name {data['assigned_to']!r}: set assigned_to, or add roles/NAME/ROLE.md"
    try:
        task = parse_task_snapshot(snapshot)
    except InvalidInput as error:
        return f"{error}. Correct it, then set status to queued"
    return _reason_for_blocked(task, data)


def _reason_for_blocked(task: Task, data: Any) -> str:
    """Return why no sweep will end the pause of a task, or an empty string."""
    pauses = task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_TIME and task.not_before is not None
    if pauses and not isinstance(data.get("sweep_at"), datetime):
        return "its pause has no sweep_at, so no agent ends it: set status to queued"
    if task.status is TaskStatus.BLOCKED and task.status_reason is None:
        return "it is blocked without a status_reason: set status to queued"
    return ""
