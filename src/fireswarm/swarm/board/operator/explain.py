"""Explain why a task is stuck and how to continue it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fireswarm.contracts.base import command_line, count_noun
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.board.dependents import awaited_ids
from fireswarm.swarm.board.rules import BoardContext

MAX_NAMED = 8
MAX_STUCK = 3
"""Maximum number of awaited tasks that an explanation names, and of blocked ones that it quotes."""


async def explain(board: BoardContext, task: Task, known: Mapping[str, Task] | None = None) -> str:
    """Return one or two sentences: what the task waits for and how to continue it.

    Reads the relatives of a blocked task, unless they are *known*.
    """
    if known is None:
        known = await relatives(board, task) if task.status is TaskStatus.BLOCKED else {}
    return reason_for_status(task, known, board.clock.now())


async def relatives(board: BoardContext, task: Task) -> dict[str, Task]:
    """Read the tasks that *task* depends on, created or repeats, by id. An unreadable one is logged and skipped."""
    original = [task.duplicate_of] if task.duplicate_of else []
    paths = [task_path(task_id) for task_id in dict.fromkeys([*task.depends_on, *task.children, *original])]
    snapshots = [item for item in await board.store.get_many(paths) if item.data is not None] if paths else []
    return {relative.task_id: relative for relative in parse_readable(snapshots, parse_task_snapshot)}


def reason_for_status(task: Task, relatives: Mapping[str, Task], now: datetime) -> str:
    """Return what the task waits for, given the task and its relatives."""
    if task.status.terminal:
        return f"It is {task.status.value} and cannot change any more."
    if task.status is TaskStatus.QUEUED:
        return f"It waits for an agent of the role {task.assigned_to}: `swarm agents` shows which run."
    if task.status is TaskStatus.IN_PROGRESS and task.lease is not None:
        at = f"{task.lease.expires_at:%H:%M:%S} UTC"  # no countdown: a text that is read again is the same
        if task.lease.expires_at < now:
            return f"Its holder's lease expired at {at}: any {task.assigned_to} agent can take it over."
        return f"{task.lease.owner_agent_id} works on it; its lease expires at {at} unless renewed."
    if task.status is TaskStatus.IN_PROGRESS:
        return f"It is in progress but nobody holds it. {_describe_requeue(task)}"
    return _reason_for_block(task, relatives)


def _describe_requeue(task: Task) -> str:
    return f"A {task.assigned_to} agent queues it within minutes; `{_retry(task)}` does it now."


def _reason_for_block(task: Task, relatives: Mapping[str, Task]) -> str:
    """Return what a blocked task waits for."""
    retry = _retry(task)
    match task.status_reason:
        case StatusReason.DEPENDENCIES | StatusReason.DELEGATING:
            return _waits_for(task, relatives)
        case StatusReason.INPUT_REQUIRED | StatusReason.APPROVAL_REQUIRED:
            return _asks(task)
        case StatusReason.RETRY_BACKOFF | StatusReason.PAUSED:
            if task.not_before is None:
                return f"It is paused: {task.summary} `{retry}` continues it."
            if task.epoch == 0:
                return f"It starts at {task.not_before.isoformat()}; `{retry}` starts it now."
            return f"It will be retried at {task.not_before.isoformat()}; `{retry}` retries it now."
        case (
            StatusReason.DEAD_LETTER
            | StatusReason.ESCALATED
            | StatusReason.GATE_FAILED
            | StatusReason.DEADLINE_EXCEEDED
        ):
            return f"It gave up: {_with_advice(task, f'Fix the cause, then run `{retry}`.')}"
        case StatusReason.NEEDS_MODEL | StatusReason.NEEDS_CONFINEMENT:
            return f"{task.summary} Then run `{retry}`."
        case None:
            return f"It is blocked without a reason, so no agent takes it. `{retry}` queues it."
        case _:
            return task.summary


def _with_advice(task: Task, advice: str) -> str:
    """Return why a task gave up, and the *advice*, on its own line after a text of several lines."""
    text = (task.error or task.summary).rstrip()
    if task.uncertain_step:
        return text
    if "\n" in text:
        return f"{text}\n{advice}"
    return f"{text}{'' if text.endswith(('.', '!', '?')) else '.'} {advice}"


def _asks(task: Task) -> str:
    approvals = [question.key for question in task.questions if question.approval is not None]
    if approvals:
        approve, deny = (
            command_line("swarm", word, shown_id(task.task_id), "--question", approvals[0])
            for word in ("approve", "deny")
        )
        return f"It asks for approval: `{approve}` or `{deny}`."
    answers = " ".join(f"{command_line(question.name)}=..." for question in task.questions)
    return f"It asks for input: `{command_line('swarm', 'answer', shown_id(task.task_id))} {answers}`."


def _waits_for(task: Task, relatives: Mapping[str, Task]) -> str:
    gone = [task_id for task_id in awaited_ids(task) if task_id not in relatives and task_id not in task.gave_up]
    unfinished = [
        relative
        for relative in relatives.values()
        if not relative.status.terminal and relative.task_id not in task.gave_up
    ]
    stuck = [relative for relative in unfinished if relative.status is TaskStatus.BLOCKED]
    if not unfinished and not gone:
        return f"All that it waited for has ended: the next sweep of an agent of the role {task.assigned_to} queues it."
    texts: list[str] = []
    if unfinished:
        names = ", ".join(shown_id(relative.task_id) for relative in unfinished[:MAX_NAMED])
        texts.append(f"It waits for {count_noun(len(unfinished), 'task')}: {names}.")
        texts += [f"{shown_id(item.task_id)} is blocked: {item.summary}" for item in stuck[:MAX_STUCK]]
    if gone:
        names = ", ".join(shown_id(task_id) for task_id in gone[:MAX_NAMED])
        texts.append(
            f"It waits in vain for {count_noun(len(gone), 'missing or unreadable task')}: {names}. The next sweep of a "
            f"{task.assigned_to} agent finds out; `{_retry(task)}` runs it without them."
        )
    return " ".join(texts)


def _retry(task: Task) -> str:
    return command_line("swarm", "retry", shown_id(task.task_id))
