"""A conversation as it is stored, and a change of it. Whatever store it is in, these are its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from fireswarm.contracts.base import JsonObject, Stored, Timestamp
from fireswarm.contracts.skills.conversation import ConversationEvent, LoggedEvent, PocketFact, TaskState
from fireswarm.errors import InvalidInput

RETENTION_DAYS = 30.0
"""How long an ended conversation is kept for whoever wants to read it."""

_CONTEXT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
"""What can be a document's id, a folder's name and a key at once."""


class ConversationState(Stored):
    """The main record of a conversation.

    ``version`` grows with every change and is what compare-and-set looks at. ``resume_key`` makes resume tokens.
    ``holder`` is the run that has a turn in hand, in a context that tasks share. ``summary_task`` is the task that
    writes a better summary; its result is taken over by the next turn. ``event_count`` is the sequence of the last
    event. ``expires_at`` is set when the conversation ends.
    """

    context_id: str
    session_hash: str = ""
    skill: str = ""
    task_state: TaskState = TaskState.PENDING
    turn: int = 0
    version: int = 0
    detail: str = ""
    summary: str = ""
    summary_task: str = ""
    inputs: JsonObject = Field(default_factory=dict)
    input_request: JsonObject = Field(default_factory=dict)
    holder: str = ""
    resume_key: str = ""
    event_count: int = 0
    created_at: Timestamp
    updated_at: Timestamp
    expires_at: Timestamp | None = None


class KeptFact(Stored):
    """A pocket fact as it is stored."""

    bucket: str
    key: str
    value: Any = None
    at: Timestamp
    ttl_seconds: int | None = None
    expires_at: Timestamp | None = None

    @property
    def name(self) -> tuple[str, str]:
        """What it is known by."""
        return self.bucket, self.key


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as a store gives it: facts that have not expired, events and message ids, oldest first.

    ``gone`` names facts whose time is over and that are still stored; ``stamp`` is the store's own mark of this
    version, where it has one.
    """

    state: ConversationState
    facts: tuple[KeptFact, ...] = ()
    events: tuple[LoggedEvent, ...] = ()
    messages: tuple[str, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    stamp: Any = None


@dataclass(frozen=True, slots=True)
class ConversationChange:
    """What is to become of a conversation; what is None stays as it is.

    ``expected_version`` is the version it must have: 0 when there must be none yet. With ``message_id`` the change is
    applied once, however often it is sent, and ``response`` is what a repetition is told. ``agent_id`` is who speaks.
    """

    context_id: str
    expected_version: int
    session_hash: str = ""
    skill: str = ""
    task_state: TaskState | None = None
    turn: int | None = None
    detail: str | None = None
    summary: str | None = None
    summary_task: str | None = None
    inputs: JsonObject | None = None
    input_request: JsonObject | None = None
    holder: str | None = None
    facts: tuple[PocketFact, ...] = ()
    events: tuple[ConversationEvent, ...] = ()
    message_id: str | None = None
    response: JsonObject | None = None
    agent_id: str = ""
    retention_days: float = RETENTION_DAYS


def check_context_id(context_id: str) -> str:
    """Return *context_id*; InvalidInput when it cannot name a conversation in every store."""
    if _CONTEXT_ID.fullmatch(context_id) is None or ".." in context_id:
        raise InvalidInput(
            f"{context_id[:80]!r} cannot name a conversation: use letters, digits and . _ : @ - (200 at most)"
        )
    return context_id
