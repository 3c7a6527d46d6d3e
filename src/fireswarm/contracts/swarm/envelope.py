"""Artifacts, signals and the agent-to-agent handoff envelope of the seed contract."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, DocumentId, JsonObject, RoleName, Stored, Timestamp
from fireswarm.contracts.skills.artifact import Artifact, Attachment, Signal


class Trace(Contract):
    """The chain of handoffs: one ``chain_id`` an objective, ``step`` counts the hops."""

    chain_id: str = Field(min_length=1)
    step: int = Field(default=0, ge=0)


class SecurityContext(Contract):
    """How freely the receiver may act; carried along, enforced where actions happen."""

    mode: str = "standard"


class TaskRef(Contract):
    """The task an envelope is about, and the role that is to take it."""

    task_id: DocumentId
    assigned_to: RoleName


class Envelope(Contract):
    """What one agent hands to another: small and typed, never a whole history.

    ``answers`` supply what the task asked, by the names of its questions.
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
    """``new`` can be claimed, ``claimed`` is being worked on under a lease, ``read`` is acknowledged."""

    NEW = "new"
    CLAIMED = "claimed"
    READ = "read"


class MailKind(StrEnum):
    """What a message is for, where that is more than to be read: ``answers`` go to the task it is about."""

    PLAIN = ""
    ANSWERS = "answers"


class MailLease(Stored):
    """Who holds a claimed message, until when, and the epoch that fences its acknowledgement."""

    owner_agent_id: str
    expires_at: Timestamp
    epoch: int


class Message(Stored):
    """One document of ``agent_mailbox``. ``outcome`` says what came of answers: taken, or why they were refused."""

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
    created_at: Timestamp
    expires_at: Timestamp | None = None

    @model_validator(mode="after")
    def _claimed_means_leased(self) -> Message:
        if self.status is MailStatus.CLAIMED and self.lease is None:
            raise ValueError("a claimed message carries the lease of its claimant")
        return self
