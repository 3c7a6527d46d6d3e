"""Tasks that did not come through ``submit``: written by hand, incomplete, malformed, or twins of another.

People write tasks in the Firebase console, and answer them there. What is missing gets its default, what is wrong
is blocked with a summary that names the field, and two documents of one idempotency key do their work once.
"""

from __future__ import annotations

from typing import Any

from fireswarm.contracts.limits import MAX_ERROR_CHARS, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import SERVER_TIME, Clock, Create, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.task import (
    DEFAULT_PRIORITY,
    NO_DEADLINE,
    StatusReason,
    Task,
    TaskSpec,
    TaskStatus,
    idempotency_key,
)
from fireswarm.errors import Conflict, FireswarmError, InvalidInput
from fireswarm.storage.documents.build import new_task, parse_task
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.state import unleased_fields
from fireswarm.swarm.board.submit import document

HAND_WRITTEN_SESSION = "console"
"""Session of a hand-written task that names none."""


async def repair(store: Store, clock: Clock, snapshot: Snapshot) -> None:
    """Fill in what a hand-written task left out; when that is not enough, block it and say what is wrong."""
    fields = _with_defaults(dict(snapshot.data or {}), snapshot.id, clock)
    merged = dict(snapshot.data or {}) | fields
    try:
        parse_task(merged, snapshot.path)
    except InvalidInput as still:
        await _try(store, [block_write(snapshot, still)])
        return
    await _try(store, [Update(snapshot.path, fields | {"updated_at": SERVER_TIME}, snapshot.update_time)])


def block_write(snapshot: Snapshot, error: InvalidInput) -> Update:
    """Return the write that blocks a task nobody can read, and says what is wrong with it."""
    fields: dict[str, Any] = {
        "status": TaskStatus.BLOCKED.value,
        "status_reason": StatusReason.DEAD_LETTER.value,
        "summary": truncate(
            f"malformed task: {error}. Correct the fields, then set status to queued.", MAX_STORED_SUMMARY_CHARS
        ),
        "error": truncate(str(error), MAX_ERROR_CHARS),
        "updated_at": SERVER_TIME,
    }
    return Update(snapshot.path, fields, snapshot.update_time)


def _with_defaults(data: dict[str, Any], task_id: str, clock: Clock) -> dict[str, Any]:
    session = data.get("session_hash") or HAND_WRITTEN_SESSION
    objective, context = data.get("objective"), data.get("context") or {}
    defaults: dict[str, Any] = {
        "task_id": task_id,
        "session_hash": session,
        "priority": DEFAULT_PRIORITY,
        "deadline": NO_DEADLINE,
        "created_at": clock.now(),
        "updated_at": clock.now(),
        "trace": {"chain_id": task_id, "step": 0},
    }
    if isinstance(objective, str) and isinstance(context, dict):
        task_context: dict[str, Any] = context
        defaults["idempotency_key"] = idempotency_key(objective, task_context)
    fields = {name: value for name, value in defaults.items() if data.get(name) is None}
    if data.get("task_id") not in (None, task_id):
        fields["task_id"] = task_id
    return fields


async def expire(store: Store, task: Task, snapshot: Snapshot) -> None:
    """Block a task whose deadline has passed before anybody took it."""
    summary = f"not finished by its deadline, {task.deadline.isoformat()}"
    fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEADLINE_EXCEEDED, summary)
    await _try(store, [Update(snapshot.path, fields, snapshot.update_time)])


async def ask_again(store: Store, task: Task, snapshot: Snapshot, error: FireswarmError) -> None:
    """Block a task that was queued by hand with answers that do not fit; they stay where they were written."""
    summary = f"{error}. Correct answers, then set status to queued."
    fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.INPUT_REQUIRED, summary)
    await _try(store, [Update(snapshot.path, fields, snapshot.update_time)])


async def adopt(store: Store, clock: Clock, task: Task, snapshot: Snapshot) -> None:
    """Tie a stray task to the one document that does its work, creating that document when it is missing.

    All twins meet there, also when they are found in the same instant: the work is done once, and each
    twin ends done with its artifacts.
    """
    spec = TaskSpec(
        objective=task.objective,
        assigned_to=task.assigned_to,
        session_hash=task.session_hash,
        created_by=task.created_by,
        skill=task.skill,
        context=task.context,
        constraints=task.constraints,
        capabilities=task.capabilities,
        attachments=task.attachments,
        priority=task.priority,
        deadline=task.deadline,
        max_attempts=task.max_attempts,
        fresh_key=task.fresh_key,
        expected_outcome=task.expected_outcome,
        instructions=task.instructions,
        for_agent=task.for_agent,
    )
    worker = new_task(spec, clock.now())
    path = task_path(worker.task_id)
    existing = await store.get(path)
    tied: dict[str, Any] = {
        "duplicate_of": worker.task_id,
        "idempotency_key": worker.idempotency_key,
        "updated_at": SERVER_TIME,
    }
    writes: list[Write] = []
    original = parse_task_snapshot(existing) if existing.data is not None else None
    if original is None:
        created = document(worker) | {
            "dependents": [task.task_id],
            "trace": {"chain_id": task.trace.chain_id, "step": 0},
        }
        writes.append(Create(path, created))
    elif not original.status.terminal:
        dependents = {"dependents": [*original.dependents, task.task_id], "updated_at": SERVER_TIME}
        writes.append(Update(path, dependents, existing.update_time))
    if original is None or not original.status.terminal:
        tied |= {
            "status": TaskStatus.BLOCKED.value,
            "status_reason": StatusReason.DEPENDENCIES.value,
            "summary": f"same objective and context as task {worker.task_id}, which does the work",
            "waiting_on": 1,
        }
    writes.append(Update(snapshot.path, tied, snapshot.update_time))
    await _try(store, writes)


async def _try(store: Store, writes: list[Write]) -> None:
    """Commit; when somebody else changed the document first, the next look at it decides anew."""
    try:
        await store.commit(writes)
    except Conflict:
        return
