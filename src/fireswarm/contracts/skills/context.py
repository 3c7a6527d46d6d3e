"""The stored form of a conversation and of a change to it, the same for all stores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field

from fireswarm.contracts.base import JsonObject, Stored, Timestamp
from fireswarm.contracts.skills.conversation import ConversationEvent, LoggedEvent, PocketFact, TaskState
from fireswarm.errors import InvalidInput

RETENTION_DAYS = 30.0
"""Retention time of an ended conversation, for readers."""

_CONTEXT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
"""Valid as a document id, a folder name and a key."""


class ConversationState(Stored):
    """The main record of a conversation.

    ``version`` is incremented by every change and compared by compare-and-set. ``resume_key`` signs resume tokens.
    ``holder`` is the run or call whose turn is in progress, ``held_message`` the message that it answers, and
    ``held_until`` the time after which another may take the turn. ``summary_task`` is the task that writes a better
    summary; the next turn uses its result. ``event_count`` is the sequence number of the last event. ``expires_at`` is
    set when the conversation ends, and until its first turn has ended.
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
    held_message: str = ""
    held_until: Timestamp | None = None
    resume_key: str = ""
    event_count: int = 0
    created_at: Timestamp
    updated_at: Timestamp
    expires_at: Timestamp | None = None


class KeptFact(Stored):
    """A pocket fact in its stored form."""

    bucket: str
    key: str
    value: Any = None
    at: Timestamp
    ttl_seconds: int | None = None
    expires_at: Timestamp | None = None

    @property
    def name(self) -> tuple[str, str]:
        """Identify the fact by bucket and key."""
        return self.bucket, self.key


@dataclass(frozen=True, slots=True)
class Conversation:
    """A loaded conversation. Expired facts are excluded; events and message ids are in order, oldest first.

    ``gone`` lists expired facts that are still stored; ``stamp`` is the store's version marker, if it has one.
    """

    state: ConversationState
    facts: tuple[KeptFact, ...] = ()
    events: tuple[LoggedEvent, ...] = ()
    messages: tuple[str, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    stamp: Any = None


@dataclass(frozen=True, slots=True)
class TurnHold:
    """Who has the turn of a conversation; without a name, nobody.

    ``message_id`` is the message that the holder answers. After ``until`` another may take the turn; without it, only
    who knows that the holder has ended.
    """

    holder: str = ""
    message_id: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationChange:
    """A change of a conversation; fields with the value None are not changed.

    ``expected_version`` is the required current version: 0 if no turn has ended. ``expected_holder`` is the required
    current holder. A change that has only a ``hold`` begins a turn: the version stays, and with it the resume token.
    With ``message_id`` the change is applied only once; a repetition gets ``response``. ``agent_id`` is the author.
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
    hold: TurnHold | None = None
    expected_holder: str | None = None
    facts: tuple[PocketFact, ...] = ()
    events: tuple[ConversationEvent, ...] = ()
    message_id: str | None = None
    response: JsonObject | None = None
    agent_id: str = ""
    retention_days: float = RETENTION_DAYS

    @property
    def begins_turn(self) -> bool:
        """True if the change only says who has the turn."""
        return self.hold is not None and self.turn is None and self.task_state is None


def check_context_id(context_id: str) -> str:
    """Return *context_id*. Raises InvalidInput if it is not a valid conversation id in every store."""
    if _CONTEXT_ID.fullmatch(context_id) is None or ".." in context_id:
        raise InvalidInput(
            f"{context_id[:80]!r} is not a valid conversation id: use letters, digits and . _ : @ - (at most 200)"
        )
    return context_id
