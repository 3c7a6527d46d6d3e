"""A model's decision in one turn, the results of its actions, and the allocation of the prompt's tokens."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from fireswarm.contracts.base import Contract, JsonObject
from fireswarm.contracts.media import MediaBlock


class ActionType(StrEnum):
    """Type of an action. The first four are from the original contract; ``call_tool`` calls a tool of the engine."""

    CALL_SKILL = "call_skill"
    RUN_COMMAND = "run_command"
    ASK_USER = "ask_user"
    FINISH = "finish"
    CALL_TOOL = "call_tool"


class ActionStep(Contract):
    """One action. ``type`` determines which keys of ``params`` are used.

    ``call_skill``: ``skill``, ``input`` (JSON text). ``run_command``: ``command``. ``call_tool``: ``tool``,
    ``input`` (JSON text). ``ask_user``: ``name``, ``question``. ``finish``: ``answer``, ``result`` (JSON text).
    """

    type: ActionType
    params: JsonObject = Field(default_factory=dict)
    expected_output: str = ""


class ModelDecision(Contract):
    """One turn's decision: the selected skill, the reason, the material to disclose, and the actions in order."""

    selected_skill: str = ""
    reasoning_summary: str = ""
    required_disclosure_paths: tuple[str, ...] = Field(default=(), max_length=20)
    planned_actions: tuple[ActionStep, ...] = Field(default=(), max_length=20)


class StepStatus(StrEnum):
    """Result of a step. A ``refused`` step was never started: a constraint or allowed-tools forbids it.

    An ``interrupted`` step was running when its process ended: it is not known if it took effect.
    """

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class StepExecutionResult(Contract):
    """The result of a step as shown to the model and the journal: bounded, sanitized, without secrets.

    ``media`` are images and documents that a tool shows.
    """

    step_id: str
    exit_code: int = 0
    stdout_summary: str = ""
    stderr_summary: str = ""
    retry_count: int = 0
    status: StepStatus = StepStatus.OK
    media: tuple[MediaBlock, ...] = ()


class TokenBudget(Contract):
    """Allocation of one prompt's tokens. ``components`` are in a fixed order; ``trimmed`` lists what was cut."""

    max_context_tokens: int
    response_headroom_tokens: int
    allocated_prompt_tokens: int
    allocated_disclosure_tokens: int
    components: dict[str, int] = Field(default_factory=dict)
    trimmed: tuple[str, ...] = ()
    counted_by: str = "estimate"


_TEXT = {"type": "string"}
_PARAMS: dict[str, str] = {
    "skill": "call_skill: name of the skill to run or continue with",
    "tool": "call_tool: name of the tool",
    "input": "call_skill, call_tool: the input as JSON text",
    "command": "run_command: one shell command",
    "name": "ask_user: short identifier of what is missing",
    "question": "ask_user: the question",
    "answer": "finish: the answer to the task",
    "result": "finish: the structured result as JSON text, if the role requires one",
}


def decision_schema() -> dict[str, Any]:
    """Return the JSON Schema of a decision, in the subset of both providers: closed objects, no references."""
    params = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _TEXT | {"description": text} for name, text in _PARAMS.items()},
    }
    action = {
        "type": "object",
        "additionalProperties": False,
        "required": ["type", "params", "expected_output"],
        "properties": {
            "type": {"type": "string", "enum": [kind.value for kind in ActionType]},
            "params": params,
            "expected_output": _TEXT,
        },
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["selected_skill", "reasoning_summary", "required_disclosure_paths", "planned_actions"],
        "properties": {
            "selected_skill": _TEXT,
            "reasoning_summary": _TEXT,
            "required_disclosure_paths": {"type": "array", "items": _TEXT},
            "planned_actions": {"type": "array", "items": action},
        },
    }
