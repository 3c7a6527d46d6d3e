"""Conversations of skills that stop and resume: states, questions, and the data kept between turns.

Each turn is one call of the skill. Its SKILL.md declares the states in which a turn may end (``Terms``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, Json, JsonObject, Stored, Timestamp
from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS

DEFAULT_MAX_TURNS = 8
MAX_TURNS = 20
"""Maximum of ``max_turns``: a conversation that is not finished by then needs review."""

MAX_EVENTS = 100
"""Maximum number of events of a conversation; older ones are condensed into its summary."""

MAX_FACTS_PER_BUCKET = 50
MAX_BUCKETS = 20
MAX_SUMMARY_CHARS = 10_000
MAX_MESSAGES = 50
"""Maximum number of messages of a conversation whose responses are stored for repetitions."""

MAX_EVENT_BYTES = 4_096
"""Maximum size of an event's payload as JSON, so that a hundred events and the inputs fit into 1 MiB."""

MAX_FACT_BYTES = 16_384
MAX_INPUT_BYTES = 200_000
MAX_RESPONSE_BYTES = 200_000
"""Maximum size of a response that is stored for a repeated message.

A larger one is not stored, and the error says so.
"""


class TaskState(StrEnum):
    """State of a conversation. ``STATES`` describes each one."""

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
        """True if no turn can follow."""
        return STATES[self].terminal

    @property
    def resumable(self) -> bool:
        """True if another turn can follow, with the missing inputs."""
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
    """Type of a logged event; a skill may use other values."""

    REQUEST = "request"
    RESPONSE = "response"
    INPUT_REQUEST = "input_request"
    ANSWER = "answer"
    DELEGATE = "delegate"
    RESULT = "result"
    PAUSE = "pause"
    NOTE = "note"


class StatePersistence(StrEnum):
    """Data that outlives a turn: nothing, state and facts, or also the event log with its summary."""

    NONE = "none"
    FACTS_ONLY = "facts_only"
    FULL_EVENTS = "full_events"


class InputField(Contract):
    """One missing input.

    ``type`` is a JSON type; ``allowed`` is an additional JSON Schema that the value must satisfy, such as
    ``{"enum": ["north", "south"]}``.
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")
    description: str
    type: str = "string"
    required: bool = True
    allowed: JsonObject = Field(default_factory=dict)


class InputRequest(Contract):
    """The inputs that a skill needs before it can continue.

    ``json_schema`` is the JSON Schema of all inputs of the skill, if its SKILL.md declares one.
    """

    missing_fields: tuple[InputField, ...] = Field(min_length=1, max_length=40)
    message: str = Field(default="", max_length=MAX_RESULT_SUMMARY_CHARS)
    json_schema: JsonObject = Field(default_factory=dict)


class InteractionOutcomes(Contract):
    """Frontmatter ``interaction_outcomes``: states of a turn in addition to completed and failed, and limits."""

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
    """A skill's conversation contract, from its frontmatter."""

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
        """Return True if a turn may end in *state*."""
        return not state.resumable or state in self.interaction_outcomes.allowed_intermediate_states

    @property
    def keeps_state(self) -> bool:
        """True if any data outlives a turn."""
        return self.state_persistence is not StatePersistence.NONE

    @property
    def keeps_events(self) -> bool:
        """True if the event log is stored."""
        return self.state_persistence is StatePersistence.FULL_EVENTS


class PocketFact(Contract):
    """A small value that a skill stores between its turns, by bucket and key; a new value replaces the old one.

    ``ttl_seconds`` is its lifetime; without it, the fact lasts as long as the conversation.
    """

    bucket: str = Field(default="state", pattern=r"^[^/\x00-\x1f]{1,100}$")
    key: str = Field(min_length=1, max_length=255)
    value: Json
    ttl_seconds: int | None = Field(default=None, ge=1, le=315_360_000)


class ConversationEvent(Contract):
    """An event of a turn, for the log."""

    type: str = Field(default=MessageType.NOTE.value, min_length=1, max_length=100)
    payload: JsonObject = Field(default_factory=dict)


class LoggedEvent(Stored):
    """A logged event; ``sequence`` counts from 1 and never repeats."""

    sequence: int
    type: str
    payload: JsonObject = Field(default_factory=dict)
    turn: int
    at: Timestamp
    agent_id: str = ""


class ConversationView(Contract):
    """The state of earlier turns for the current turn.

    ``turn`` counts from 1. ``inputs`` are all inputs and answers so far, ``facts`` the skill's facts that have not
    expired, ``events`` the latest events (oldest first), ``summary`` the condensed earlier events. ``resumed_from`` is
    the final state of the previous turn; None on the first turn.
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
        """Return the value of a fact, or *default*."""
        found = (fact.value for fact in self.facts if (fact.bucket, fact.key) == (bucket, key))
        return next(found, default)


class ResponseMetadata(Contract):
    """State of the conversation after a turn, independent of the coarser status of its task."""

    context_id: str = ""
    skill: str = ""
    turn: int = 1
    max_turns: int = DEFAULT_MAX_TURNS
    version: int = 0
    terminal: bool = False
    resumable: bool = False
    state_detail: str = Field(default="", max_length=50)
    duration_seconds: float = 0.0
