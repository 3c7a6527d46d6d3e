"""Find tasks that no worker will ever process: set aside, unreadable, or with an unknown status or role."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, WAITS_FOR_TIME, Task, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS, task_path
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot
from fireswarm.swarm.board.dependents import awaited_ids
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import is_set_aside
from fireswarm.swarm.board.waits import look_at

STATUSES = frozenset(TaskStatus)


class Stall(NamedTuple):
    """A task that is stuck, and how to continue it."""

    path: str
    reason: str


async def find_stalls(board: BoardContext, limit: int = 200) -> list[Stall]:
    """Return stalled tasks among the dead-lettered ones, those that wait, run or have an unknown status, and others.

    Reads up to *limit* documents of each kind. Those whose document does not say yet why they stand still come first.
    """
    snapshots: dict[str, Snapshot] = {}
    kinds = [queries.dead_letters(limit), queries.unknown_statuses(limit), queries.by_id(TASKS, limit)]
    kinds += [queries.with_status(status, limit) for status in ("in_progress", "blocked")]
    for query in kinds:
        for snapshot in await board.store.query(query):
            snapshots[snapshot.path] = snapshot
    said, unsaid = [], []
    for stall in _stalls(snapshots.values(), board):
        (said if is_set_aside(snapshots[stall.path].data or {}) else unsaid).append(stall)
    return [*unsaid, *await _orphans(snapshots.values(), board), *said]


async def _orphans(snapshots: Iterable[Snapshot], board: BoardContext) -> list[Stall]:
    """Return the tasks that wait for a task which does not exist, was canceled, or belongs to no role of this swarm."""
    waiting, _ = parse_all(snapshots, parse_task_snapshot)
    waiting = [task for task in waiting if task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_OTHERS]
    ids = dict.fromkeys(task_id for task in waiting for task_id in awaited_ids(task))
    read = {item.id: item for item in await board.store.get_many([task_path(task_id) for task_id in ids])}
    stalls: list[Stall] = []
    for task in waiting:
        awaited = look_at(task, [read[task_id] for task_id in awaited_ids(task)])
        lost = [f"{shown_id(task_id)} {how}" for task_id, how in awaited.lost]
        if lost or not awaited.unfinished:
            why = f"it waits for tasks of which {', '.join(lost)}" if lost else "all that it waits for has ended"
            stalls.append(
                Stall(
                    task_path(task.task_id),
                    f"{why}: run `{command_line('swarm', 'retry', shown_id(task.task_id))}`",
                )
            )
    return stalls


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
    if task.status is TaskStatus.IN_PROGRESS and task.lease is None:
        return f"it is in_progress, but nobody holds it: an agent of {task.assigned_to} queues it, or set it to queued"
    return ""
