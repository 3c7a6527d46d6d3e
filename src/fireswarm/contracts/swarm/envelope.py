"""The handoff envelope and the mailbox message."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, DocumentId, JsonObject, RoleName, Stored, Timestamp
from fireswarm.contracts.skills.artifact import Artifact, Attachment, Signal


class Trace(Contract):
    """The chain of handoffs: one ``chain_id`` per objective; ``step`` counts the hops."""

    chain_id: str = Field(min_length=1)
    step: int = Field(default=0, ge=0, le=2**53)


class SecurityMode(StrEnum):
    """Permissions of the receiver of an envelope, strictest first."""

    READ_ONLY = "read_only"
    DEMO_SAFE = "demo_safe"
    STANDARD = "standard"


class SecurityContext(Contract):
    """Limits for the receiver, enforced where actions are executed. An unknown mode is refused."""

    mode: str = SecurityMode.STANDARD.value


class TaskRef(Contract):
    """The task of an envelope, and the role that executes it."""

    task_id: DocumentId
    assigned_to: RoleName


class Envelope(Contract):
    """The content that one agent hands to another: small and typed, never a full history.

    ``answers`` answer the task's questions, by the names or ids of the questions.
    """

    envelope_id: DocumentId
    task: TaskRef
    session_hash: str = Field(min_length=1)
    artifacts: tuple[Artifact, ...] = ()
    signals: tuple[Signal, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    answers: JsonObject = Field(default_factory=dict)
    notes: str = ""
    security_context: SecurityContext = SecurityContext()
    trace: Trace


class MailStatus(StrEnum):
    """``new`` can be claimed, ``claimed`` is in progress under a lease, ``read`` is acknowledged."""

    NEW = "new"
    CLAIMED = "claimed"
    READ = "read"


class MailKind(StrEnum):
    """Purpose of a message: ``answers`` go to the task that asked, a ``message`` creates a task of its role.

    An ``order`` of an operator pauses or drains agents while it is new. A plain one is the envelope of a planned task,
    or informs an agent.
    """

    PLAIN = ""
    ANSWERS = "answers"
    MESSAGE = "message"
    ORDER = "order"


class MailLease(Stored):
    """Holder and expiry of a claimed message, and the epoch that fences its acknowledgement."""

    owner_agent_id: str
    expires_at: Timestamp
    epoch: int


class Message(Stored):
    """A document of ``agent_mailbox``. ``outcome`` is its result: taken, a task's id, or refused with the reason."""

    message_id: DocumentId
    to_agent_id: str
    from_agent_id: str
    session_hash: str
    task_id: str
    payload: Envelope
    kind: MailKind = MailKind.PLAIN
    status: MailStatus
    outcome: str = ""
    lease: MailLease | None = None
    deliveries: int = 0
    schema_version: int = 1
    created_at: Timestamp
    expires_at: Timestamp | None = None

    @model_validator(mode="after")
    def _claimed_means_leased(self) -> Message:
        if self.status is MailStatus.CLAIMED and self.lease is None:
            raise ValueError("a claimed message must have the lease of its claimant")
        return self
