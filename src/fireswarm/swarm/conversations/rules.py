"""What a turn may do, and who may go on: the same for a skill on the board and for one that is called by itself."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.inputs import faults
from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.skills.context import Conversation, ConversationState
from fireswarm.contracts.skills.conversation import (
    MAX_TURNS,
    ConversationEvent,
    ConversationView,
    MessageType,
    PocketFact,
    TaskState,
    Terms,
)
from fireswarm.contracts.skills.skill import SkillResult, SkillState
from fireswarm.errors import ContextEnded, InvalidInput, ResumeRefused

TOLD_CHARS = 500


def state_of_result(result: SkillResult) -> TaskState:
    """What a skill says of its own turn."""
    return TaskState(result.state.value)


def checked_state(result: SkillResult, terms: Terms, skill: str, *, router: bool) -> tuple[TaskState, str]:
    """The state in which a turn really ends, and why it is another than the skill says; empty when it is not."""
    state = state_of_result(result)
    if state is TaskState.DELEGATING and not router:
        return TaskState.BLOCKED, f"skill {skill} hands work over, and there is nobody here who would take it"
    if not terms.allows(state):
        return TaskState.BLOCKED, (
            f"skill {skill} ended its turn with {state.value}, which its contract does not allow: "
            "list it under interaction_outcomes.allowed_intermediate_states of its SKILL.md"
        )
    if state is TaskState.INPUT_REQUIRED and not result.questions:
        return TaskState.BLOCKED, f"skill {skill} needs input and does not say which"
    return state, ""


def reason_turn_exceeded(turn: int, terms: Terms, skill: str) -> str:
    """Why there is no turn of this number; empty when there is."""
    most = min(terms.interaction_outcomes.max_turns, MAX_TURNS)
    if turn <= most:
        return ""
    return f"skill {skill} had its {most} turns (max_turns) and did not end: a person has to look"


def check_inputs(terms: Terms, inputs: Mapping[str, Any]) -> None:
    """InvalidInput unless *inputs* satisfy the skill's schema; what is missing is left to a skill that may ask."""
    asks = terms.allows(TaskState.INPUT_REQUIRED)
    wrong = faults(terms.input_request_jsonschema, inputs, partial=asks)
    if wrong:
        raise InvalidInput(f"the inputs do not fit the skill's input_request_jsonschema: {'; '.join(wrong)}")


def view(found: Conversation | None, context_id: str, turn: int, terms: Terms, inputs: JsonObject) -> ConversationView:
    """What the skill is given of its conversation."""
    most = terms.interaction_outcomes.max_turns
    if found is None:
        return ConversationView(context_id=context_id, turn=turn, max_turns=most, inputs=inputs)
    facts = tuple(
        PocketFact(bucket=fact.bucket, key=fact.key, value=fact.value, ttl_seconds=fact.ttl_seconds)
        for fact in found.facts
    )
    return ConversationView(
        context_id=context_id,
        turn=turn,
        max_turns=most,
        inputs=inputs,
        facts=facts,
        events=found.events,
        summary=found.state.summary,
        resumed_from=found.state.task_state if found.state.turn else None,
    )


_ENDINGS: dict[SkillState, MessageType] = {
    SkillState.INPUT_REQUIRED: MessageType.INPUT_REQUEST,
    SkillState.DELEGATING: MessageType.DELEGATE,
    SkillState.PAUSED: MessageType.PAUSE,
}


def events_of(terms: Terms, began: ConversationEvent, result: SkillResult) -> tuple[ConversationEvent, ...]:
    """What a turn leaves in the log: how it began, what the skill noted, how it ended."""
    if not terms.keeps_events:
        return ()
    payload: JsonObject = {"summary": result.summary[:TOLD_CHARS]}
    if result.questions:
        payload["asked"] = [question.name for question in result.questions]
    if result.tasks:
        payload["tasks"] = [f"{task.key}: {truncate(task.objective, MAX_LABEL_CHARS)}" for task in result.tasks[:20]]
    kind = _ENDINGS.get(result.state, MessageType.RESPONSE)
    return (began, *result.log, ConversationEvent(type=kind.value, payload=payload))


# ── who may go on ───────────────────────────────────────────────────────────────────────────────────────


def resume_token(state: ConversationState) -> str:
    """The token that lets its bearer take the next turn: bound to the context, its version and its turn."""
    return f"{state.version}.{state.turn}.{_signature(state)}"


def check_resume(found: Conversation | None, context_id: str, token: str | None) -> Conversation:
    """Return the context that may go on; ResumeRefused and ContextEnded say why it may not."""
    if found is None:
        raise ResumeRefused(f"there is no conversation {context_id} to resume: begin it without resume")
    state = found.state
    if state.task_state.terminal:
        raise ContextEnded(f"conversation {context_id} is {state.task_state.value}: begin another one")
    if not state.task_state.resumable:
        raise ResumeRefused(f"conversation {context_id} is {state.task_state.value}: there is nothing to resume")
    if token is not None and not hmac.compare_digest(token.encode(), resume_token(state).encode()):
        issued = token.partition(".")[0]
        if issued.isdecimal() and issued != str(state.version):
            raise ResumeRefused(
                f"the resume token is stale: conversation {context_id} went on since it was issued; "
                "use the token of its last response"
            )
        raise ResumeRefused(f"the resume token was never issued for conversation {context_id}")
    return found


def _signature(state: ConversationState) -> str:
    text = f"{state.context_id}\n{state.version}\n{state.turn}"
    return hmac.new(bytes.fromhex(state.resume_key), text.encode(), hashlib.sha256).hexdigest()
