"""A model's decision, the results of its actions, and the allocation of the prompt's tokens."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Contract, JsonObject
from fireswarm.contracts.skills.artifact import MediaBlock


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
    """One decision: the selected skill, the reason, the material to disclose, and the actions in order."""

    selected_skill: str = ""
    reasoning_summary: str = ""
    required_disclosure_paths: tuple[str, ...] = Field(default=(), max_length=20)
    planned_actions: tuple[ActionStep, ...] = Field(default=(), max_length=20)


class StepStatus(StrEnum):
    """Result of a step. A ``refused`` step was never started: a constraint or the allowed tools forbid it.

    An ``interrupted`` step was running when its process ended: it is unknown if it took effect.
    """

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class StepExecutionResult(Contract):
    """The result of a step for the model and the journal: bounded, sanitized, without secrets.

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
    """Allocation of one prompt's tokens. ``components`` are in a fixed order; ``trimmed`` lists the removed parts."""

    max_context_tokens: int
    response_headroom_tokens: int
    allocated_prompt_tokens: int
    allocated_disclosure_tokens: int
    components: dict[str, int] = Field(default_factory=dict)
    trimmed: tuple[str, ...] = ()
    counted_by: str = "estimate"
