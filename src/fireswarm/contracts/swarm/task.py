"""The task as submitted (TaskSpec), and as a document of ``agent_tasks`` (Task)."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from fireswarm.contracts.base import (
    DocumentId,
    JsonObject,
    RoleName,
    SessionName,
    Stored,
    Timestamp,
    check_not_blank,
)
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS
from fireswarm.contracts.model_choice import ModelChoice
from fireswarm.contracts.skills.artifact import Artifact, Attachment, Confidence, Signal
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import CALL_KEY, DEFAULT_MAX_REVISIONS, REVIEW_MARK, Check, Question
from fireswarm.contracts.swarm.agent import MAX_INSTRUCTIONS_CHARS
from fireswarm.contracts.swarm.constraints import Budget, Constraints
from fireswarm.contracts.swarm.envelope import Trace
from fireswarm.errors import InvalidInput

SCHEMA_VERSION = 1
"""Version of the stored documents. A process leaves documents with a higher number as they are."""

DEFAULT_PRIORITY = 5
DEFAULT_MAX_ATTEMPTS = 5

NO_DEADLINE = datetime(9999, 12, 31, tzinfo=UTC)
"""Stored for a task without a deadline: queries omit documents without an ordered field, and null would sort first."""

MAX_CONTEXT_BYTES = 200_000
"""Maximum size of ``context`` as JSON. A Firestore document of 1 MiB also holds the result and journal references."""


class TaskStatus(StrEnum):
    """The five task statuses of the original contract."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    DONE = "done"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        """True for done and canceled, which never change again."""
        return self in (TaskStatus.DONE, TaskStatus.CANCELED)


class StatusReason(StrEnum):
    """Reason why a task is blocked."""

    DEPENDENCIES = "dependencies"
    INPUT_REQUIRED = "input_required"
    APPROVAL_REQUIRED = "approval_required"
    DELEGATING = "delegating"
    PAUSED = "paused"
    RETRY_BACKOFF = "retry_backoff"
    ESCALATED = "escalated"
    GATE_FAILED = "gate_failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    NEEDS_MODEL = "needs_model"
    NEEDS_CONFINEMENT = "needs_confinement"
    DEAD_LETTER = "dead_letter"


class StepDecision(StrEnum):
    """Decision of an operator about a journaled step: run it again, or treat it as done."""

    REDO = "redo"
    SKIP = "skip"


WAITS_FOR_OTHERS = frozenset({StatusReason.DEPENDENCIES, StatusReason.DELEGATING})
"""Blocked until other tasks end; the commit that ends the last of them queues the task."""

GIVEN_UP = frozenset(map(StatusReason, ("dead_letter", "deadline_exceeded", "escalated", "gate_failed")))
"""Blocked until an operator acts; the waiting tasks are notified."""


NEEDS_PERSON = frozenset(StatusReason) - WAITS_FOR_OTHERS - {StatusReason.RETRY_BACKOFF}
"""Reasons that no agent can end by itself; a paused task with a time starts by itself, see ``Task.needs_person``."""


class ChildFailure(StrEnum):
    """Policy of a task whose child was given up: wait for an operator, run again with available results, or fail."""

    WAIT = "wait"
    REPLAN = "replan"
    FAIL = "fail"


WAITS_FOR_TIME = frozenset({StatusReason.RETRY_BACKOFF, StatusReason.PAUSED})
"""Blocked until ``not_before``; the sweep of any worker of the role queues the task."""


Count = Annotated[int, Field(ge=0, le=2**53)]
"""A counter that JSON readers do not round, and that cannot overflow 64 bits."""


class Lease(Stored):
    """Holder of a task, start and expiry, and the fencing epoch that every later commit must match.

    A lease without an epoch was written by hand or by another program; the next claim starts at epoch 1.
    """

    owner_agent_id: str
    expires_at: Timestamp
    epoch: Count = 0
    claimed_at: Timestamp | None = None


def id_of(task: AnyTask) -> str:
    """Return the id of a task."""
    return task.task_id if isinstance(task, (Task, Submitted)) else task


TaskReference = Annotated[DocumentId, BeforeValidator(id_of)]
"""The id of a task; a task is accepted in its place."""


class TaskSpec(ModelChoice):
    """A task to submit. ``context`` is free JSON; it and the objective make the idempotency key.

    ``capabilities`` are added to the role's; for a capability of both, the task's configuration applies. The model gets
    ``instructions`` after the role's prompt; ``for_agent`` is the id of the stored agent to which they belong.
    ``message_id`` is the message that requested the task; its artifacts and signals are inputs.
    """

    objective: Annotated[str, AfterValidator(check_not_blank)] = Field(min_length=1, max_length=MAX_OBJECTIVE_CHARS)
    assigned_to: RoleName
    session_hash: SessionName
    created_by: str = "operator"
    skill: str | None = None
    context: JsonObject = Field(default_factory=dict)
    constraints: Constraints = Constraints()
    capabilities: tuple[CapabilityUse, ...] = Field(default=(), max_length=20)
    attachments: tuple[Attachment, ...] = ()
    priority: int = Field(default=DEFAULT_PRIORITY, ge=1, le=10)
    deadline: Timestamp | None = None
    max_attempts: int = Field(default=DEFAULT_MAX_ATTEMPTS, ge=1, le=100)
    on_child_failure: ChildFailure = ChildFailure.REPLAN
    depends_on: tuple[TaskReference, ...] = Field(default=(), max_length=500)
    handoff_reason: str = ""
    expected_outcome: str = ""
    checks: tuple[Check, ...] = Field(default=(), max_length=10)
    max_revisions: int = Field(default=DEFAULT_MAX_REVISIONS, ge=0, le=20)
    review_plan: bool = False
    fresh_key: str = Field(default="", max_length=512)
    instructions: str = Field(default="", max_length=MAX_INSTRUCTIONS_CHARS)
    for_agent: DocumentId | None = None
    message_id: str = Field(default="", max_length=512, pattern=r"^[^/]*$")


class TaskResult(Stored):
    """Result of a finished task; large content is referenced by artifact URIs."""

    summary: str = ""
    artifacts: tuple[Artifact, ...] = ()
    signals: tuple[Signal, ...] = ()
    insights: tuple[str, ...] = ()
    confidence: Confidence | None = None
    next_recommended_actions: tuple[str, ...] = ()


def _check_context_size(context: dict[str, Any]) -> dict[str, Any]:
    size = len(canonical_json(context).encode())
    if size > MAX_CONTEXT_BYTES:
        raise ValueError(
            f"has {size:,} bytes; at most {MAX_CONTEXT_BYTES:,} are allowed: put large content into a file or "
            f"bucket and pass its path or URI"
        )
    return context


class Task(ModelChoice, Stored):
    """A document of ``agent_tasks``.

    ``waiting_on`` counts unfinished dependencies and children; above 8 it is an upper bound. ``dependents`` are the
    tasks to notify at the end of this task; ``children`` are the tasks that it created. ``sweep_at`` is the next time
    at which a sweep must check the task: the lease's expiry, the end of a back-off, or the deadline. ``attempt`` counts
    attempts that failed or were lost; ``setbacks`` are such ends of turns that had made progress, which cost no
    attempt. ``fresh_key`` salts the idempotency key of a deliberate re-run, or of a step of a
    plan. ``turn`` counts turns that ended in waiting: two runs with the same count are the same turn, repeated after a
    crash. ``answers`` are the latest ones by name; a repeated question has none. ``answered`` has the answers for the
    steps that asked, by step and name. ``answer_schema`` is the JSON Schema of its answers. ``key_id`` is the document
    of ``agent_task_keys`` with the id of the task that owns this work. ``open`` is removed when the end of the task was
    settled, which makes it possible to find a status that a person set to canceled or done. ``uncertain_step`` waits
    for a decision; a retry runs ``redo_steps`` again. ``step_decisions`` apply to the runs up to ``decided_epoch``;
    ``extra_turns`` are additional decisions of the model. ``checkpoint_uri`` is the document of its last run: a
    repeated turn continues from its journal. ``gave_up`` are children that were given up and are no longer awaited;
    with ``wakes_on_failure``, the first one queues the task. ``awaits`` are the children whose answers it waits for
    while others work on; empty if it waits for all. ``continues`` is the ended task whose conversation this one goes
    on with, told the ``feedback``; ``thread_id`` is the first task of that conversation. ``fork_before`` is the answer
    of the model there before which it begins. ``said`` are messages to its model, heard before its next call.
    ``idempotency_key`` is always that of the stored objective and context, which a person may have edited; runs up to
    ``work_epoch`` did other work. ``schema_version`` is the version of the document's form.
    """

    task_id: DocumentId
    session_hash: SessionName
    objective: str = Field(min_length=1, max_length=MAX_OBJECTIVE_CHARS)
    assigned_to: RoleName
    status: TaskStatus
    status_reason: StatusReason | None = None
    summary: str = ""
    created_by: str = "operator"
    parent_task_id: str | None = None
    plan_key: str = ""
    skill: str | None = None
    context: Annotated[JsonObject, AfterValidator(_check_context_size)] = Field(default_factory=dict)
    constraints: Constraints = Constraints()
    budget: Budget | None = None
    capabilities: tuple[CapabilityUse, ...] = Field(default=(), max_length=20)
    attachments: tuple[Attachment, ...] = ()
    priority: int = Field(default=DEFAULT_PRIORITY, ge=1, le=10)
    deadline: Timestamp = NO_DEADLINE
    handoff_reason: str = ""
    expected_outcome: str = ""
    checks: tuple[Check, ...] = Field(default=(), max_length=10)
    max_revisions: int = Field(default=DEFAULT_MAX_REVISIONS, ge=0, le=20)
    review_plan: bool = False
    idempotency_key: str
    fresh_key: str = Field(default="", max_length=512)
    instructions: str = Field(default="", max_length=MAX_INSTRUCTIONS_CHARS)
    for_agent: DocumentId | None = None
    message_id: str = Field(default="", max_length=512, pattern=r"^[^/]*$")
    duplicate_of: DocumentId | None = None
    key_id: str = ""
    trace: Trace
    lease: Lease | None = None
    epoch: Count = 0
    attempt: Count = 0
    setbacks: Count = 0
    max_attempts: int = Field(default=DEFAULT_MAX_ATTEMPTS, ge=1, le=100)
    not_before: Timestamp | None = None
    sweep_at: Timestamp | None = None
    depends_on: tuple[DocumentId, ...] = Field(default=(), max_length=500)
    waiting_on: Count = 0
    dependents: tuple[DocumentId, ...] = ()
    children: tuple[DocumentId, ...] = ()
    gave_up: tuple[DocumentId, ...] = ()
    awaits: tuple[DocumentId, ...] = ()
    wakes_on_failure: bool = False
    continues: DocumentId | None = None
    thread_id: DocumentId | None = None
    fork_before: Count | None = None
    feedback: str = ""
    said: tuple[str, ...] = ()
    on_child_failure: ChildFailure = ChildFailure.REPLAN
    questions: tuple[Question, ...] = ()
    answers: JsonObject = Field(default_factory=dict)
    answered: dict[str, JsonObject] = Field(default_factory=dict)
    answer_schema: JsonObject = Field(default_factory=dict)
    turn: Count = 0
    uncertain_step: str = ""
    redo_steps: tuple[str, ...] = ()
    step_decisions: dict[str, StepDecision] = Field(default_factory=dict)
    decided_epoch: Count = 0
    extra_turns: Count = 0
    checkpoint_uri: str | None = None
    error: str | None = None
    result: TaskResult | None = None
    work_epoch: Count = 0
    schema_version: Count = SCHEMA_VERSION
    created_at: Timestamp
    updated_at: Timestamp
    ended_at: Timestamp | None = None
    open: bool = False

    @property
    def given_up(self) -> bool:
        """True for a task that a person or its planner has to continue."""
        return self.status is TaskStatus.BLOCKED and self.status_reason in GIVEN_UP

    @property
    def needs_person(self) -> bool:
        """True for a blocked task that neither time nor other tasks move on; so is one without a reason."""
        starts = self.status_reason is StatusReason.PAUSED and self.not_before is not None
        return self.status is TaskStatus.BLOCKED and self.status_reason in {*NEEDS_PERSON, None} and not starts

    def awaits_child(self, task_id: str) -> bool:
        """Return True if this task, when it waits for children, waits for this one."""
        return not self.awaits or task_id in self.awaits

    @property
    def is_question(self) -> bool:
        """True for a task that only answers a question from another one's conversation."""
        return self.continues is not None and self.is_call

    @property
    def is_review(self) -> bool:
        """True for a task that reviews the work of another one, as a check of it."""
        return self.is_call and REVIEW_MARK in self.plan_key

    @property
    def is_call(self) -> bool:
        """True for a task whose result is the output of a call: it was delegated or asked, not planned."""
        return self.plan_key.startswith(CALL_KEY)

    @property
    def thread(self) -> str:
        """Id of the first task of its conversation, its own unless it continues another one."""
        return self.thread_id or self.task_id

    def run_id(self, epoch: int) -> str:
        """Return the id of the run of one lease epoch. A stale worker can change only its own run."""
        return f"{self.task_id}.{epoch}"

    def bind(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return *answers* with the names of the open questions replaced by their ids.

        Bound answers are rejected if other questions are open by then.
        """
        ids = {question.name: question.key for question in self.questions}
        return {ids.get(name, name): value for name, value in answers.items()}

    def approval(self, key: str = "") -> Question:
        """Return the open request for approval with the id *key*, or the first one. Raises InvalidInput."""
        requests = {question.key: question for question in self.questions if question.approval is not None}
        if not requests:
            state = self.status_reason.value if self.status_reason else self.status.value
            raise InvalidInput(f"task {self.task_id} asks for no approval: it is {state}")
        first = next(iter(requests))
        if (key or first) not in requests:
            raise InvalidInput(
                f"request {key} of task {self.task_id} is not open; open is {first}: check it with `swarm show`"
            )
        return requests[key or first]

    @property
    def work_id(self) -> str:
        """The document of ``agent_task_keys`` for the task's work: session, role, objective and context."""
        return task_id_for(self.session_hash, self.idempotency_key, self.assigned_to)


@dataclass(frozen=True, slots=True)
class Submitted:
    """Result of a submit: the task, and True if this call created it."""

    task: Task
    created: bool

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.task.task_id


AnyTask = Submitted | Task | str
"""A task: as returned by a read or a submit, or its id."""


def canonical_json(value: Any) -> str:
    """Return the canonical form of a JSON value: sorted keys, no spaces, timestamps in ISO form."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_spell)


def _spell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON-serializable: use strings, numbers, booleans, lists and maps")


def idempotency_key(objective: str, context: JsonObject, salt: str = "") -> str:
    """Hash the canonical (objective, context): the same work has the same key, in any key order.

    A *salt* makes a deliberate re-run count as different work. Surrounding white space is ignored.
    """
    text = canonical_json(
        [" ".join(objective.split()), context, salt] if salt else [" ".join(objective.split()), context]
    )
    return hashlib.sha256(text.encode()).hexdigest()


def task_id_for(session_hash: str, key: str, assigned_to: str) -> str:
    """Derive the task's id from session, role and key: two submits of one objective get the same document.

    Hash-derived ids are distributed like random ones, so they cause no hot spot.
    """
    return _hashed_uuid(session_hash, assigned_to, key)


def _hashed_uuid(*parts: str) -> str:
    digest = hashlib.sha256("\n".join(parts).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))
