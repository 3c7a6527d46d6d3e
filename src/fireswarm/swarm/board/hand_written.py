"""Tasks that were not created by ``submit``: written by hand, incomplete, malformed, or duplicates of another.

People write tasks in the Firebase console and answer them there. Missing fields get their defaults; a task with an
invalid field is blocked with a summary that names the field; two documents of one idempotency key run once.
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
"""Session of a hand-written task without ``session_hash``."""


async def repair(store: Store, clock: Clock, snapshot: Snapshot) -> None:
    """Add the missing fields of a hand-written task, or block it with the reason if it is still invalid."""
    fields = _with_defaults(dict(snapshot.data or {}), snapshot.id, clock)
    merged = dict(snapshot.data or {}) | fields
    try:
        parse_task(merged, snapshot.path)
    except InvalidInput as still:
        await _try(store, [block_write(snapshot, still)])
        return
    await _try(store, [Update(snapshot.path, fields | {"updated_at": SERVER_TIME}, snapshot.update_time)])


def block_write(snapshot: Snapshot, error: InvalidInput) -> Update:
    """Return the write that blocks an unreadable task, with the reason in its summary."""
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
    """Return the missing fields with their defaults, and the correct ``task_id`` if the document has another."""
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
    """Block a task whose deadline has passed before it was claimed."""
    summary = f"not finished by its deadline, {task.deadline.isoformat()}"
    fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.DEADLINE_EXCEEDED, summary)
    await _try(store, [Update(snapshot.path, fields, snapshot.update_time)])


async def ask_again(store: Store, task: Task, snapshot: Snapshot, error: FireswarmError) -> None:
    """Block a task that was queued by hand with invalid answers. The answers stay in the document."""
    summary = f"{error}. Correct answers, then set status to queued."
    fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.INPUT_REQUIRED, summary)
    await _try(store, [Update(snapshot.path, fields, snapshot.update_time)])


async def adopt(store: Store, clock: Clock, task: Task, snapshot: Snapshot) -> None:
    """Link a hand-written task to the one document with its derived id; create that document if it is missing.

    All duplicates link to that document, even if two are found at the same moment. The work is done once, and each
    duplicate ends as done with its artifacts.
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
    """Commit and ignore a conflict: the document was changed, and the next claim or sweep checks it again."""
    try:
        await store.commit(writes)
    except Conflict:
        return
