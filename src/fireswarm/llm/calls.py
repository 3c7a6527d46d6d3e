"""The tool calls of an answer: the decision that they are, and their form for another model. Pure."""

from __future__ import annotations

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.llm.chat import OWN_ID, ChatResponse, ToolCall
from fireswarm.contracts.llm.decision import ActionStep, ActionType, ModelDecision

RUN_COMMAND = "run_command"
USE_SKILL = "use_skill"
READ_SKILL_FILE = "read_skill_file"
ASK_USER = "ask_user"
FINISH = "finish"

MAX_RECORDED = 20
"""Calls and paths of one answer that its decision lists; all calls are executed."""

MAX_REASON_CHARS = 2_000


def decision_of(answer: ChatResponse) -> ModelDecision:
    """Return the decision: the skill that is used, the text as the reason, the files asked for, and the calls."""
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
            return ActionStep(type=ActionType.CALL_TOOL, params={"tool": call.name, "input": call.input})


def of_another_model(response: ChatResponse, turn: int) -> ChatResponse:
    """Return an answer as any model takes it: its text and calls, without thoughts, and with ids of our own."""
    calls = [call.model_copy(update={"id": f"{OWN_ID}{turn}-{number}"}) for number, call in enumerate(response.calls)]
    return response.model_copy(update={"content": (), "calls": tuple(calls)})
