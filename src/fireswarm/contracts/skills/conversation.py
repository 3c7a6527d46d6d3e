"""A skill that stops and resumes: the states of its conversation, what it asks, what is kept between its turns.

Each turn is one call of the skill. What it may do beyond ending is said in its SKILL.md (``Terms``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, JsonObject, Stored, Timestamp

DEFAULT_MAX_TURNS = 8
MAX_TURNS = 20
"""Turns a skill may ask for at most: what is not settled by then needs a person."""

MAX_EVENTS = 100
"""Events kept of a context; what is older lives on in its summary."""

MAX_FACTS_PER_BUCKET = 50
MAX_BUCKETS = 20
MAX_SUMMARY_CHARS = 10_000
MAX_MESSAGES = 50
"""Messages of a context whose answers are kept for whoever sends one again."""

MAX_EVENT_BYTES = 4_096
"""Of an event's payload as JSON: a hundred of them and the inputs fit into a document of 1 MiB."""

MAX_FACT_BYTES = 16_384
MAX_INPUT_BYTES = 200_000
MAX_RESPONSE_BYTES = 200_000
"""Of an answer kept for a repeated message; a larger one is not kept, and the repetition is told so."""


class TaskState(StrEnum):
    """Where a conversation stands. ``STATES`` says what each means."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    ESCALATED = "escalated"
    INPUT_REQUIRED = "input_required"
    DELEGATING = "delegating"
    PAUSED = "paused"

    @property
    def terminal(self) -> bool:
        """Nothing follows."""
        return STATES[self].terminal

    @property
    def resumable(self) -> bool:
        """Another turn may follow, with what was missing."""
        return STATES[self].resumable


class StateRow(NamedTuple):
    """One row of the table of states."""

    terminal: bool
    resumable: bool
    meaning: str


STATES: dict[TaskState, StateRow] = {
    TaskState.PENDING: StateRow(False, False, "not started"),
    TaskState.IN_PROGRESS: StateRow(False, False, "a turn is running"),
    TaskState.COMPLETED: StateRow(True, False, "ended with a result"),
    TaskState.FAILED: StateRow(True, False, "failed permanently"),
    TaskState.TIMEOUT: StateRow(True, False, "ran longer than allowed"),
    TaskState.BLOCKED: StateRow(True, False, "stopped by a gate, such as an answer that violates the contract"),
    TaskState.ESCALATED: StateRow(True, False, "reached max_turns; needs review"),
    TaskState.INPUT_REQUIRED: StateRow(False, True, "waits for inputs from its caller"),
    TaskState.DELEGATING: StateRow(False, True, "waits for delegated tasks"),
    TaskState.PAUSED: StateRow(False, True, "paused until the next call"),
}


class MessageType(StrEnum):
    """What an event of the log is about; a skill may log other words."""

    REQUEST = "request"
    RESPONSE = "response"
    INPUT_REQUEST = "input_request"
    ANSWER = "answer"
    DELEGATE = "delegate"
    RESULT = "result"
    PAUSE = "pause"
    NOTE = "note"


class StatePersistence(StrEnum):
    """What outlives a turn: nothing, state and facts, or these and the log of events with its summary."""

    NONE = "none"
    FACTS_ONLY = "facts_only"
    FULL_EVENTS = "full_events"


class InputField(Contract):
    """One missing input.

    ``type`` is a JSON type; ``allowed`` is a JSON Schema that the value has to satisfy beside it, such as
    ``{"enum": ["north", "south"]}``.
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
    description: str
    type: str = "string"
    required: bool = True
    allowed: JsonObject = Field(default_factory=dict)


class InputRequest(Contract):
    """What a skill needs before it can go on."""

    missing_fields: tuple[InputField, ...] = Field(min_length=1, max_length=40)
    message: str = Field(default="", max_length=2_000)


class InteractionOutcomes(Contract):
    """Frontmatter ``interaction_outcomes``: what a turn of the skill may end in beside completed and failed."""

    allowed_intermediate_states: tuple[TaskState, ...] = ()
    max_turns: int = Field(default=DEFAULT_MAX_TURNS, ge=1, le=MAX_TURNS)
    supports_resume: bool = True
    input_request_schema: tuple[InputField, ...] = ()

    @model_validator(mode="after")
    def _only_resumable(self) -> InteractionOutcomes:
        for state in self.allowed_intermediate_states:
            if not state.resumable:
                known = ", ".join(item.value for item in TaskState if item.resumable)
                raise ValueError(f"{state.value} is not an intermediate state: use {known}")
        if self.allowed_intermediate_states and not self.supports_resume:
            raise ValueError(
                "intermediate states need supports_resume: true, otherwise the conversation cannot continue"
            )
        return self


class Terms(Contract):
    """A skill's contract about its conversation, as its frontmatter says it."""

    interaction_outcomes: InteractionOutcomes = InteractionOutcomes()
    state_persistence: StatePersistence = StatePersistence.FACTS_ONLY
    input_request_jsonschema: JsonObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_resume(self) -> Terms:
        waits = self.interaction_outcomes.allowed_intermediate_states
        if waits and self.state_persistence is StatePersistence.NONE:
            raise ValueError("intermediate states need state_persistence facts_only or full_events, not none")
        return self

    def allows(self, state: TaskState) -> bool:
        """Whether a turn may end in *state*."""
        return not state.resumable or state in self.interaction_outcomes.allowed_intermediate_states

    @property
    def keeps_state(self) -> bool:
        """Whether anything outlives a turn."""
        return self.state_persistence is not StatePersistence.NONE

    @property
    def keeps_events(self) -> bool:
        """Whether the log of events is kept."""
        return self.state_persistence is StatePersistence.FULL_EVENTS


class PocketFact(Contract):
    """A small value a skill keeps between its turns, by bucket and key; writing it again replaces it.

    ``ttl_seconds`` is how long it is there; without, as long as the conversation.
    """

    bucket: str = Field(default="state", pattern=r"^[^/\x00-\x1f]{1,100}$")
    key: str = Field(min_length=1, max_length=255)
    value: Any
    ttl_seconds: int | None = Field(default=None, ge=1, le=315_360_000)


class ConversationEvent(Contract):
    """Something that happened in a turn, for the log."""

    type: str = Field(default=MessageType.NOTE.value, min_length=1, max_length=100)
    payload: JsonObject = Field(default_factory=dict)


class LoggedEvent(Stored):
    """An event as it was logged; ``sequence`` counts from 1 and never repeats."""

    sequence: int
    type: str
    payload: JsonObject = Field(default_factory=dict)
    turn: int
    at: Timestamp
    agent_id: str = ""


class ConversationView(Contract):
    """What a turn is given of those before it.

    ``turn`` counts from 1. ``inputs`` are all inputs and answers so far, ``facts`` what the skill kept and has not
    expired, ``events`` the log's last (oldest first), ``summary`` what the log held before them. ``resumed_from`` is
    what the last turn ended in; None on the first.
    """

    context_id: str
    turn: int = Field(ge=1)
    max_turns: int = Field(ge=1)
    inputs: JsonObject = Field(default_factory=dict)
    facts: tuple[PocketFact, ...] = ()
    events: tuple[LoggedEvent, ...] = ()
    summary: str = ""
    resumed_from: TaskState | None = None

    def fact(self, key: str, default: Any = None, *, bucket: str = "state") -> Any:
        """The value of a fact, else *default*."""
        found = (fact.value for fact in self.facts if (fact.bucket, fact.key) == (bucket, key))
        return next(found, default)


class ResponseMetadata(Contract):
    """Where a conversation stands after a turn, whatever coarser status its carrier has."""

    context_id: str = ""
    skill: str = ""
    turn: int = 1
    max_turns: int = DEFAULT_MAX_TURNS
    version: int = 0
    terminal: bool = False
    resumable: bool = False
    state_detail: str = Field(default="", max_length=50)
    duration_seconds: float = 0.0
