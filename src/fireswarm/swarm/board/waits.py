"""Check a task that waits for others: a deleted dependency tells nobody, and neither does one without an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.ports import Snapshot, Update
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, Task, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import next_check
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.dependents import (
    MAX_WRITTEN,
    UnreadableTask,
    awaited_ids,
    commit_told,
    count_awaited,
    fewer,
    tell_of_loss,
)
from fireswarm.swarm.board.rounds import check_children
from fireswarm.swarm.board.rules import BoardContext

WIDE_CHECK_SECONDS = 300.0
"""Longest time between two checks of a task that waits for more than `MAX_WRITTEN` others.

Their ends are counted after the commit, so a worker that is killed in between leaves the count to a sweep.
"""


@dataclass(frozen=True, slots=True)
class AwaitedTasks:
    """The tasks that a task waits for, by what became of them: ids of lost ones, with the reason, and of open ones."""

    lost: Sequence[tuple[str, str]]
    unfinished: Sequence[str]


def look_at(task: Task, read: Sequence[Snapshot]) -> AwaitedTasks:
    """Sort the awaited tasks by their documents."""
    lost: list[tuple[str, str]] = []
    unfinished: list[str] = []
    for snapshot in read:
        status = None if snapshot.data is None else snapshot.data.get("status")
        if snapshot.data is None:
            lost.append((snapshot.id, "was deleted"))
        elif status == TaskStatus.CANCELED:
            lost.append((snapshot.id, "was canceled"))
        elif status != TaskStatus.DONE and snapshot.id not in task.gave_up:
            unfinished.append(snapshot.id)
    return AwaitedTasks([item for item in lost if item[0] not in task.gave_up], unfinished)


async def waits_in_vain(board: BoardContext, task: Task) -> bool:
    """Return True if *task* waits for others of which none is left, or one was deleted or canceled."""
    if task.status is not TaskStatus.BLOCKED or task.status_reason not in WAITS_FOR_OTHERS:
        return False
    awaited = look_at(task, await board.store.get_many([task_path(item) for item in awaited_ids(task)]))
    return bool(awaited.lost) or not awaited.unfinished


async def check_waiting(board: BoardContext, snapshot: Snapshot, task: Task, now: datetime) -> TaskStatus | None:
    """Queue, or block for a person, a task whose awaited tasks have ended or are gone; else set its next check.

    Returns the new status, or None if it goes on waiting. Costs one read for each awaited task; above `MAX_WRITTEN`,
    three for 1,000 awaited ones, unless some are gone.
    """
    if task.waiting_on > MAX_WRITTEN and not task.wakes_on_failure and not await _some_are_lost(board, task):
        if await count_awaited(board, task.task_id):
            return TaskStatus.QUEUED
        return await _check_later(board, snapshot, task, now)
    if task.wakes_on_failure and await check_children(board, task.task_id):
        return TaskStatus.QUEUED
    awaited = look_at(task, await board.store.get_many([task_path(item) for item in awaited_ids(task)]))
    for lost_id, how in awaited.lost:
        text = f"task {shown_id(lost_id)} {how}"
        told = await tell_of_loss(board.store, UnreadableTask(lost_id, (task.task_id,)), text, how)
        await commit_told(board, told)
    if awaited.lost:
        return parse_task_snapshot(await board.store.get(snapshot.path)).status
    left = len(awaited.unfinished)
    if left < task.waiting_on <= MAX_WRITTEN or not left:
        fields = fewer(task, task.waiting_on - left)
        await board.store.commit([Update(snapshot.path, fields, snapshot.update_time)])
        return None if left else TaskStatus.QUEUED
    return await _check_later(board, snapshot, task, now)


async def _check_later(board: BoardContext, snapshot: Snapshot, task: Task, now: datetime) -> None:
    due = next_check(task.updated_at, now, task.deadline)
    if task.waiting_on > MAX_WRITTEN:
        due = min(due, now + timedelta(seconds=WIDE_CHECK_SECONDS))
    await board.store.commit([Update(snapshot.path, {"sweep_at": due}, snapshot.update_time)])


async def _some_are_lost(board: BoardContext, task: Task) -> bool:
    """Return True if fewer documents name the task as their dependent than it waits for, or canceled ones do."""
    named = len(awaited_ids(task)) - len(task.gave_up)
    if await board.store.count(queries.awaited_by(task.task_id)) < named:
        return True
    return await board.store.count(queries.awaited_by(task.task_id, status=TaskStatus.CANCELED.value)) > 0
