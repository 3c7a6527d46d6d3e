"""Conversion between contracts and documents. Pure: no store, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from fireswarm.contracts.base import check_not_blank, command_line, count_noun, explain_validation
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.permissions import lasting_approvals
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.task import (
    MAX_CONTEXT_BYTES,
    NO_DEADLINE,
    SCHEMA_VERSION,
    Lease,
    StatusReason,
    Task,
    TaskSpec,
    TaskStatus,
    canonical_json,
    idempotency_key,
    task_id_for,
)
from fireswarm.errors import InvalidInput, NewerDocument


def plain(model: BaseModel) -> dict[str, Any]:
    """Return a contract in Firestore's form: enums as strings, tuples as lists, timestamps unchanged.

    Empty optional fields are omitted, which saves space.
    """
    required = _required_fields(type(model))
    return {
        name: _plain(value)
        for name, value in model
        if name in required or not (value is None or (isinstance(value, (str, tuple, dict)) and not value))
    }


@cache
def _required_fields(kind: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, field in kind.model_fields.items() if field.is_required())


def _plain(value: Any) -> Any:
    """Return a value in Firestore's form."""
    if isinstance(value, BaseModel):
        return plain(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        return [_plain(item) for item in cast("Iterable[Any]", value)]
    if isinstance(value, dict):
        pairs: dict[Any, Any] = value
        return {str(key): _plain(item) for key, item in pairs.items()}
    return value


def parse_task(data: Mapping[str, Any] | None, path: str) -> Task:
    """Read a task document. Raises InvalidInput with every invalid field."""
    if data is None:
        raise InvalidInput(f"{path} does not exist")
    _check_objective(data, path)
    try:
        task = Task.model_validate(data)
    except ValidationError as error:
        raise unreadable(error, data, f"{path} is not a task") from error
    check_version(task.schema_version, path)
    return task


ENDED = (TaskStatus.DONE.value, TaskStatus.CANCELED.value)  # a hand-written status may be of any type


def _check_objective(data: Mapping[str, Any], path: str) -> None:
    """Raise InvalidInput for a hand-written task without words, which no role can work on; an ended one is left."""
    objective: Any = data.get("objective")
    if not isinstance(objective, str) or data.get("status") in ENDED:
        return
    try:
        check_not_blank(objective)
    except ValueError:
        task_id = path.rpartition("/")[2]
        again = command_line("swarm", "retry", shown_id(task_id))
        raise InvalidInput(f"{path}: the objective is empty: write it, then `{again}`") from None


def check_version(version: int, path: str) -> None:
    """Raise NewerDocument if a newer version wrote the document."""
    if version > SCHEMA_VERSION:
        raise NewerDocument(
            f"{path} has schema_version {version}; this version of fireswarm knows {SCHEMA_VERSION} and leaves it "
            "alone",
            version=version,
        )


def unreadable(error: ValidationError, data: Mapping[str, Any], text: str) -> InvalidInput:
    """Return the error for an invalid document: NewerDocument if a newer version may have written it.

    A newer version has a higher ``schema_version``, or a new word where this version knows a few.
    """
    explained = f"{text}: {explain_validation(error)}"
    version = data.get("schema_version")
    newer = isinstance(version, int) and version > SCHEMA_VERSION
    if newer or all(item["type"] == "enum" and _is_word(item["input"]) for item in error.errors()):
        told = f"{explained}. If a newer version wrote it, upgrade this one; otherwise correct it"
        return NewerDocument(told, version=version if newer else None)
    return InvalidInput(explained)


def next_sweep(
    status: TaskStatus,
    reason: StatusReason | None,
    lease: Lease | None,
    not_before: datetime | None,
    deadline: datetime,
) -> datetime | None:
    """Return the next time at which a sweep must check this task, or None."""
    if status is TaskStatus.IN_PROGRESS and lease is not None:
        return lease.expires_at
    if status.terminal or reason in (StatusReason.DEAD_LETTER, StatusReason.DEADLINE_EXCEEDED):
        return None
    due = [moment for moment in (not_before, deadline) if moment is not None and moment < NO_DEADLINE]
    return min(due, default=None)


FIRST_CHECK_SECONDS = 30.0
LAST_CHECK_SECONDS = 3600.0
"""Shortest and longest time between two checks of a task that waits for others; each is as long as it has waited."""


def next_check(since: datetime, now: datetime, deadline: datetime) -> datetime:
    """Return when a sweep checks what a task waits for that has waited *since*, at the latest at its deadline."""
    seconds = min(max((now - since).total_seconds(), FIRST_CHECK_SECONDS), LAST_CHECK_SECONDS)
    return min(now + timedelta(seconds=seconds), deadline)


def _is_word(value: Any) -> bool:
    """Return True for a text that could be a value of an enumeration: lower-case words joined by underscores."""
    return isinstance(value, str) and value.isascii() and value.isidentifier() and value.islower()


def new_task(spec: TaskSpec, now: datetime, *, waiting_on: int = 0) -> Task:
    """Build a submitted task; its id is derived from session, role and idempotency key."""
    try:
        size = len(canonical_json(spec.context).encode())
    except TypeError as error:
        raise InvalidInput(f"the context cannot be stored: {error}") from error
    if size > MAX_CONTEXT_BYTES:
        raise InvalidInput(
            f"the context has {size:,} bytes; at most {MAX_CONTEXT_BYTES:,} are allowed: put large content into a "
            f"file or bucket and pass its path or URI"
        )
    key = idempotency_key(spec.objective, spec.context, spec.fresh_key)
    task_id = task_id_for(spec.session_hash, key, spec.assigned_to)
    deadline = spec.deadline or NO_DEADLINE
    waits = waiting_on > 0
    status = TaskStatus.BLOCKED if waits else TaskStatus.QUEUED
    fields = spec.model_dump(exclude={"deadline"})
    return Task.model_validate(
        fields
        | {
            "task_id": task_id,
            "key_id": task_id,
            "open": True,
            "status": status,
            "status_reason": StatusReason.DEPENDENCIES if waits else None,
            "summary": f"waits for {count_noun(waiting_on, 'task')}" if waits else "waits for an agent",
            "deadline": deadline,
            "sweep_at": next_check(now, now, deadline) if waits else next_sweep(status, None, None, None, deadline),
            "idempotency_key": key,
            "trace": {"chain_id": task_id, "step": 0},
            "waiting_on": waiting_on,
            "created_at": now,
            "updated_at": now,
        }
    )


def planned_task(parent: Task, epoch: int, planned: PlannedTask, now: datetime, waiting_on: int) -> Task:
    """Build the task planned by *parent* in its turn of *epoch*; ``depends_on`` still contains plan keys.

    No limit of the parent is loosened: constraints, deadline, session, or configuration of a capability. Raises
    InvalidInput for malformed constraints.
    """
    try:
        constraints = parent.constraints.tighten(planned.constraints)
    except ValidationError as error:
        raise InvalidInput(f"constraints of the task {planned.key}: {explain_validation(error)}") from error
    configured = {use.id: use for use in parent.capabilities}
    spec = TaskSpec(
        objective=planned.objective,
        assigned_to=planned.assigned_to,
        session_hash=parent.session_hash,
        created_by=parent.assigned_to,
        skill=planned.skill,
        model=planned.model,
        effort=planned.effort,
        fallback=planned.fallback,
        context=planned.context,
        constraints=constraints,
        capabilities=tuple(configured.get(name, CapabilityUse(id=name)) for name in planned.capabilities),
        priority=planned.priority or parent.priority,
        deadline=min(planned.deadline or parent.deadline, parent.deadline),
        max_attempts=planned.max_attempts or parent.max_attempts,
        on_child_failure=parent.on_child_failure,
        handoff_reason=planned.handoff_reason,
        expected_outcome=planned.expected_outcome,
        checks=planned.checks,
        max_revisions=planned.max_revisions,
        review_plan=parent.review_plan,
        fresh_key=f"{parent.task_id}.{epoch}/{planned.key}",
    )
    task = new_task(spec, now, waiting_on=waiting_on)
    return task.model_copy(
        update={
            "parent_task_id": parent.task_id,
            "plan_key": planned.key,
            "answered": lasting_approvals(parent.answered),
            "trace": parent.trace.model_copy(update={"step": parent.trace.step + 1}),
        }
    )


def run_identity(task: Task, epoch: int, agent_id: str, started_at: datetime) -> dict[str, Any]:
    """Return the fields of a run document that are the same for every writer."""
    return {
        "run_id": task.run_id(epoch),
        "task_id": task.task_id,
        "agent_id": agent_id,
        "role": task.assigned_to,
        "session_hash": task.session_hash,
        "epoch": epoch,
        "turn": task.turn,
        "idempotency_key": task.idempotency_key,
        "chain_id": task.trace.chain_id,
        "schema_version": SCHEMA_VERSION,
        "started_at": started_at,
    }


def message_document(envelope: Envelope, sender: str, to: str, now: datetime, keep_until: datetime) -> dict[str, Any]:
    """Build the ``agent_mailbox`` document of an envelope; *keep_until* is the field of the TTL policy."""
    return {
        "message_id": envelope.envelope_id,
        "to_agent_id": to,
        "from_agent_id": sender,
        "session_hash": envelope.session_hash,
        "task_id": envelope.task.task_id,
        "payload": plain(envelope),
        "status": "new",
        "lease": None,
        "deliveries": 0,
        "schema_version": SCHEMA_VERSION,
        "created_at": now,
        "expires_at": keep_until,
    }
