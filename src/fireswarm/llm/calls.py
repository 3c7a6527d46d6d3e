"""Conversions of an answer with tool calls: to a decision, to a form for another model, and to a copy without secrets.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.llm.chat import OWN_ID, ChatMessage, ChatResponse, ToolCall
from fireswarm.contracts.llm.decision import ActionStep, ActionType, ModelDecision
from fireswarm.redaction import Redactor

RUN_COMMAND = "run_command"
USE_SKILL = "use_skill"
READ_SKILL_FILE = "read_skill_file"
ASK_USER = "ask_user"
FINISH = "finish"

MAX_RECORDED = 20
"""Maximum number of calls and paths that the decision of one answer lists; all calls are executed."""

MAX_REASON_CHARS = 2_000

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_SIGNATURES = ("signature", "thought_signature", "data")
"""Fields of blocks that contain no text; a provider refuses a block in which they were changed."""


def decision_of(answer: ChatResponse) -> ModelDecision:
    """Return the decision: the skill in use, the text as the reason, the requested files, and the calls."""
    used = [call for call in answer.calls if call.name == USE_SKILL]
    read = [call for call in answer.calls if call.name == READ_SKILL_FILE]
    return ModelDecision(
        selected_skill=str(used[-1].input.get("name") or "") if used else "",
        reasoning_summary=truncate(answer.text, MAX_REASON_CHARS),
        required_disclosure_paths=tuple(str(call.input.get("path") or "") for call in read[:MAX_RECORDED]),
        planned_actions=tuple(action_of(call) for call in answer.calls if call not in read)[:MAX_RECORDED],
    )


def action_of(call: ToolCall) -> ActionStep:
    """Return a call as an action."""
    match call.name:
        case "run_command":
            return ActionStep(type=ActionType.RUN_COMMAND, params={"command": "", **call.input})
        case "use_skill":
            params = {"skill": str(call.input.get("name") or ""), "input": call.input.get("input") or {}}
            return ActionStep(type=ActionType.CALL_SKILL, params=params)
        case "ask_user":
            return ActionStep(type=ActionType.ASK_USER, params={"question": "", **call.input})
        case "finish":
            return ActionStep(type=ActionType.FINISH, params=call.input)
        case _:
            return action_of_tool(call)


def action_of_tool(call: ToolCall) -> ActionStep:
    """Return a call as an action of the type ``call_tool``."""
    return ActionStep(type=ActionType.CALL_TOOL, params={"tool": call.name, "input": call.input})


def of_another_model(response: ChatResponse, decision: int) -> ChatResponse:
    """Return an answer in a form that any model accepts: its text and calls, without thoughts, and with our ids."""
    calls = [_with_id(call, f"{OWN_ID}{decision}-{number}") for number, call in enumerate(response.calls)]
    return response.model_copy(update={"content": (), "calls": tuple(calls)})


def _with_id(call: ToolCall, own_id: str) -> ToolCall:
    """Return a call with an id of ours, and its input in one order of keys, which a journal does not keep."""
    given = json.loads(json.dumps(call.input, sort_keys=True, default=str))
    return call.model_copy(update={"id": own_id, "input": given})


def for_another_model(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return a conversation in a form that any model accepts, as ``of_another_model`` does for one answer."""
    ids: dict[str, str] = {}
    given: list[ChatMessage] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            ids = {call.id: f"{OWN_ID}given-{number}-{place}" for place, call in enumerate(message.calls)}
        calls = tuple(_with_id(call, ids[call.id]) for call in message.calls)
        outputs = tuple(
            output.model_copy(update={"call_id": ids.get(output.call_id, output.call_id)}) for output in message.outputs
        )
        given.append(replace(message, content=None, calls=calls, outputs=outputs, wire=None))
    return tuple(given)


def clean_response(response: ChatResponse, redact: Redactor) -> ChatResponse:
    """Remove secrets from an answer, and control characters from its text, which is shown to a person.

    Its blocks and calls keep their control characters. A thought with a secret is dropped, since a provider refuses a
    changed thought.
    """
    content = [_clean_block(block, redact) for block in response.content]
    calls = tuple(call.with_clean_input(redact.without_secrets(call.input)) for call in response.calls)
    kept = tuple(block for block in content if block is not None)
    return response.model_copy(update={"text": redact.clean(response.text), "content": kept, "calls": calls})


def _clean_block(block: Any, redact: Redactor) -> Any:
    """Return a block of an answer without secrets, its signature unchanged; None for a thought with a secret."""
    if not isinstance(block, dict):
        return redact.without_secrets(block)
    fields = cast("dict[str, Any]", block)
    signed = {name: fields[name] for name in _SIGNATURES if name in fields}
    unsigned = {name: value for name, value in fields.items() if name not in signed}
    cleaned: dict[str, Any] = redact.without_secrets(unsigned)
    is_thought = fields.get("type") in _THOUGHTS or bool(fields.get("thought"))
    if is_thought and cleaned | signed != fields:
        return None
    return {name: (cleaned | signed)[name] for name in fields}
