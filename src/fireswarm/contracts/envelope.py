"""Artifacts, signals and the agent-to-agent handoff envelope of the seed contract."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, DocumentId, JsonObject, RoleName, Stored, Timestamp


class Artifact(Contract):
    """A piece of work a task leaves behind.

    ``value`` holds small JSON content; larger content lives in the blob store under ``uri``.
    ``type`` is a short registered word such as ``inventory``, ``report`` or ``url_list``.
    """

    type: str = Field(min_length=1, max_length=64)
    name: str = ""
    summary: str = ""
    value: Any = None
    uri: str | None = None
    mime: str | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = None
    source_task_id: str | None = None


class Signal(Contract):
    """Something noticed: a name, a strength between 0 and 1, and what it was noticed about."""

    name: str = Field(min_length=1, max_length=128)
    strength: float = Field(ge=0.0, le=1.0)
    subject: str = ""
    note: str = ""


class Attachment(Contract):
    """An input that came with the objective, by reference."""

    name: str = Field(min_length=1)
    mime: str = "application/octet-stream"
    uri: str = Field(min_length=1)


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


Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
"""A probability-like number between 0 and 1."""

__all__ = [
    "Artifact",
    "Attachment",
    "Confidence",
    "Envelope",
    "JsonObject",
    "MailKind",
    "MailLease",
    "MailStatus",
    "Message",
    "SecurityContext",
    "Signal",
    "TaskRef",
    "Trace",
]
