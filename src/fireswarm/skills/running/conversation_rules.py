"""Rules of turns and of resuming, the same for a skill on the board and for a direct call."""

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
    """Return the state in the skill's result."""
    return TaskState(result.state.value)


def checked_state(result: SkillResult, terms: Terms, skill: str, *, router: bool) -> tuple[TaskState, str]:
    """Return the turn's actual state, and the reason if it differs from the reported one, otherwise ""."""
    if result.state is SkillState.ADVICE_REQUIRED:
        return TaskState.BLOCKED, f"skill {skill} asks for advice, which only a swarm can get: submit a task with it"
    state = state_of_result(result)
    if state is TaskState.DELEGATING and not router:
        return TaskState.BLOCKED, f"skill {skill} delegated tasks, but no swarm is running to execute them"
    if not terms.allows(state):
        return TaskState.BLOCKED, (
            f"skill {skill} ended its turn with {state.value}, which its contract does not allow: "
            "list it under interaction_outcomes.allowed_intermediate_states of its SKILL.md"
        )
    if state is TaskState.INPUT_REQUIRED and not result.questions:
        return TaskState.BLOCKED, f"skill {skill} requires input but asks no question"
    return state, ""


def reason_turn_exceeded(turn: int, terms: Terms, skill: str) -> str:
    """Return the reason if the skill has used up its turns, else ""."""
    most = min(terms.interaction_outcomes.max_turns, MAX_TURNS)
    if turn <= most:
        return ""
    return f"skill {skill} reached max_turns ({most}) without finishing; needs review"


def check_inputs(terms: Terms, inputs: Mapping[str, Any]) -> None:
    """Raise InvalidInput unless *inputs* satisfy the skill's schema.

    Inputs may be missing if the skill may ask for them.
    """
    asks = terms.allows(TaskState.INPUT_REQUIRED)
    wrong = faults(terms.input_request_jsonschema, inputs, partial=asks)
    if wrong:
        raise InvalidInput(f"the inputs do not fit the skill's input_request_jsonschema: {'; '.join(wrong)}")


def view(found: Conversation | None, context_id: str, turn: int, terms: Terms, inputs: JsonObject) -> ConversationView:
    """Return the part of a conversation that is passed to the skill."""
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
    """Return the log events of a turn: its start, the skill's own entries, its end.

    Returns nothing if the skill has no log.
    """
    if not terms.keeps_events:
        return ()
    payload: JsonObject = {"summary": result.summary[:TOLD_CHARS]}
    if result.questions:
        payload["asked"] = [question.name for question in result.questions]
    if result.tasks:
        payload["tasks"] = [f"{task.key}: {truncate(task.objective, MAX_LABEL_CHARS)}" for task in result.tasks[:20]]
    kind = _ENDINGS.get(result.state, MessageType.RESPONSE)
    return (began, *result.log, ConversationEvent(type=kind.value, payload=payload))


# ── resuming ────────────────────────────────────────────────────────────────────────────────────────────


def resume_token(state: ConversationState) -> str:
    """Return the token that allows the next turn, bound to the conversation, its version and its turn."""
    return f"{state.version}.{state.turn}.{_signature(state)}"


def check_resume(found: Conversation | None, context_id: str, token: str | None) -> Conversation:
    """Return the conversation if it may be resumed. Raises ResumeRefused or ContextEnded if not."""
    if found is None:
        raise ResumeRefused(f"there is no conversation {context_id} to resume: start it without resume")
    state = found.state
    if state.task_state.terminal:
        raise ContextEnded(f"conversation {context_id} is {state.task_state.value}: start another one")
    if not state.task_state.resumable:
        raise ResumeRefused(f"conversation {context_id} is {state.task_state.value}: it cannot be resumed")
    if token is not None and not hmac.compare_digest(token.encode(), resume_token(state).encode()):
        issued = token.partition(".")[0]
        if issued.isdecimal() and issued != str(state.version):
            raise ResumeRefused(
                f"the resume token is stale: conversation {context_id} has continued since then; use the token of "
                f"its last response"
            )
        raise ResumeRefused(f"the resume token was never issued for conversation {context_id}")
    return found


def _signature(state: ConversationState) -> str:
    text = f"{state.context_id}\n{state.version}\n{state.turn}"
    return hmac.new(bytes.fromhex(state.resume_key), text.encode(), hashlib.sha256).hexdigest()
