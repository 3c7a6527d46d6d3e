"""Say something to a task: a running one hears it before its next call, a finished one goes on as a follow-up."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fireswarm.contracts.limits import MAX_STORED_SUMMARY_CHARS, shown_id, truncate
from fireswarm.contracts.ports import SERVER_TIME, Create, Update, Write
from fireswarm.contracts.skills.artifact import Signal
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef
from fireswarm.contracts.swarm.task import StatusReason, Submitted, Task, TaskStatus
from fireswarm.contracts.text_page import fence_lines
from fireswarm.errors import Conflict, InvalidInput, StoreUnavailable, TerminalTask
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import message_document
from fireswarm.storage.documents.paths import message_path, task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.operator.actions import change_task, load
from fireswarm.swarm.board.rounds import follow_up
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import queued_fields
from fireswarm.swarm.board.submit import document

OPERATOR, AGENT = "operator", "agent"

SAID_SIGNAL = "said"
"""Name of the signal that tells a task's holder that somebody said something to it."""

MAX_SAID = 100
MAX_SAID_CHARS = 8_000


async def say(board: BoardContext, task_id: str, text: str, agent: str = "", message_id: str = "") -> Task:
    """Say *text* to the model of a task that has not ended. A planner that waits for its tasks is woken.

    *agent* is the key or role of the agent that says it; "" is the operator, whatever the names of agents are.
    The same *message_id* is said once. Raises TerminalTask for a task that has ended, and InvalidInput for an empty or
    too long text.
    """
    said, sender = _check_text(text), f"{AGENT} {agent}" if agent else OPERATOR
    if message_id and (await board.store.get(message_path(message_id))).data is not None:
        return (await load(board.store, task_id))[0]

    def fields(task: Task) -> dict[str, Any]:
        if task.status.terminal:
            raise TerminalTask(f"task {task_id} is {task.status.value}: it hears nothing more")
        if len(task.said) >= MAX_SAID:
            raise InvalidInput(f"task {task_id} has been told {MAX_SAID} messages, the most it takes")
        number = f"{shown_id(task.task_id)}.{len(task.said) + 1}"
        told = fence_lines(said, f"the {sender}") if agent else said
        words = f"Message {len(task.said) + 1} of the {sender}: {told}\n[message {number}]"
        waits = task.status is TaskStatus.BLOCKED and task.status_reason is StatusReason.DELEGATING
        wakes = queued_fields(task, f"the {sender} said something") | {"waiting_on": 0} if waits else {}
        return {"said": [*task.said, words], **(wakes if task.wakes_on_failure else {})}

    async def with_message(task: Task) -> Sequence[Write]:
        return [_message(board, task, said, sender, message_id or str(uuid.uuid4()))]

    return await change_task(board.store, board.rules, task_id, fields, also=with_message)


async def go_on(board: BoardContext, task_id: str, text: str, fresh_key: str = "") -> Submitted:
    """Go on with an ended objective: a new task has its conversation, files and memory, and is told *text*.

    A conversation that goes on already hears it there. The same *fresh_key* is said once. Raises InvalidInput for a
    task that has not ended, or is part of a plan.
    """
    said = _check_text(text)
    salt = f"{task_id}/said/{fresh_key or uuid.uuid4().hex}"
    for _ in range(board.rules.settle_attempts):
        task, version = await load(board.store, task_id)
        if task.status is not TaskStatus.DONE:
            raise InvalidInput(f"task {task_id} is {task.status.value}: only a task that is done has a follow-up")
        if task.parent_task_id is not None:
            raise InvalidInput(f"task {task_id} is part of a plan: say it to its objective, {task.trace.chain_id}")
        last, version = await _last_of_thread(board, task, version)
        following = follow_up(last, f"The operator says: {said}", salt, board.clock.now(), created_by=last.created_by)
        stored = await board.store.get(task_path(following.task_id))
        if stored.data is not None:
            return Submitted(parse_task_snapshot(stored), created=False)
        if not last.status.terminal:
            message_id = str(uuid.uuid5(uuid.NAMESPACE_OID, salt))
            return Submitted(await say(board, last.task_id, text, message_id=message_id), created=False)
        unchanged = Update(task_path(last.task_id), {"updated_at": SERVER_TIME}, version)
        with contextlib.suppress(Conflict):
            await board.store.commit([Create(task_path(following.task_id), document(following)), unchanged])
            return Submitted(following, created=True)
    raise StoreUnavailable(f"the conversation of task {task_id} keeps changing: nothing was said, say it again")


async def _last_of_thread(board: BoardContext, first: Task, version: Any) -> tuple[Task, Any]:
    """Return the newest task of a conversation that was not canceled, and its version."""
    tasks = {first.task_id: (first, version)}
    for snapshot in await board.store.query(queries.thread_of(first.thread)):
        with contextlib.suppress(InvalidInput):
            task = parse_task_snapshot(snapshot)
            if task.session_hash == first.session_hash and task.status is not TaskStatus.CANCELED:
                tasks[task.task_id] = (task, snapshot.update_time)
    return max(tasks.values(), key=lambda each: (each[0].created_at, each[0].task_id))


def _check_text(text: str) -> str:
    said = text.strip()
    if not said or len(said) > MAX_SAID_CHARS:
        raise InvalidInput(f"the message must have 1 to {MAX_SAID_CHARS:,} characters; it has {len(said):,}")
    return said


def _message(board: BoardContext, task: Task, text: str, sender: str, message_id: str) -> Write:
    """Return the write of the message: to the task's holder, which acts on it, or else to its role, as a record."""
    envelope = Envelope(
        envelope_id=message_id,
        task=TaskRef(task_id=task.task_id, assigned_to=task.assigned_to),
        session_hash=task.session_hash,
        signals=(Signal(name=SAID_SIGNAL, strength=1.0, subject=task.task_id),),
        notes=truncate(text, MAX_STORED_SUMMARY_CHARS),
        trace=task.trace,
    )
    now = board.clock.now()
    keep = now + timedelta(seconds=board.rules.message_ttl_seconds)
    to = task.lease.owner_agent_id if task.lease is not None else task.assigned_to
    made = message_document(envelope, sender, to, now, keep)
    return Create(message_path(envelope.envelope_id), made if task.lease is not None else made | {"status": "read"})
