"""The result of a turn for a caller of a skill.

``AgentResponse`` and ``SkillResult`` have the same content for two readers: a caller of a skill, and the task on which
a skill works. A skill may return either.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, JsonObject
from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.conversation import (
    ConversationEvent,
    InputField,
    InputRequest,
    PocketFact,
    ResponseMetadata,
    TaskState,
)
from fireswarm.contracts.skills.skill import PlannedTask, Question, SkillResult, SkillState

OUTPUTS = "outputs"
"""Artifact type that carries an AgentResponse's outputs."""


class AgentResponse(Contract):
    """The end of a turn. A caller that resumes must pass back ``resume_token``, which is valid for one turn."""

    state: TaskState
    message: str = Field(default="", max_length=MAX_RESULT_SUMMARY_CHARS)
    outputs: JsonObject = Field(default_factory=dict)
    input_request: InputRequest | None = None
    tasks: tuple[PlannedTask, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    errors: tuple[str, ...] = ()
    facts: tuple[PocketFact, ...] = Field(default=(), max_length=100)
    events: tuple[ConversationEvent, ...] = Field(default=(), max_length=40)
    pause_seconds: float | None = Field(default=None, gt=0)
    retryable: bool = False
    resume_token: str | None = None
    metadata: ResponseMetadata = ResponseMetadata()

    @model_validator(mode="after")
    def _says_what_it_needs(self) -> AgentResponse:
        if self.state is TaskState.INPUT_REQUIRED and self.input_request is None:
            raise ValueError("input_required needs an input_request that names the missing inputs")
        if self.state is TaskState.DELEGATING and not self.tasks:
            raise ValueError("delegating needs at least one task")
        return self


_RESULT_STATES: dict[TaskState, SkillState] = {
    TaskState.COMPLETED: SkillState.COMPLETED,
    TaskState.INPUT_REQUIRED: SkillState.INPUT_REQUIRED,
    TaskState.DELEGATING: SkillState.DELEGATING,
    TaskState.PAUSED: SkillState.PAUSED,
    TaskState.FAILED: SkillState.FAILED,
}
"""States that a skill may return; the engine sets the others."""


def as_result(response: AgentResponse) -> SkillResult:
    """Convert a skill's AgentResponse to a SkillResult. Raises ValueError for a state that a skill may not return."""
    if response.state not in _RESULT_STATES:
        known = ", ".join(state.value for state in _RESULT_STATES)
        raise ValueError(f"a skill cannot end in {response.state.value}: use {known}")
    asked = response.input_request
    outputs = Artifact(
        type=OUTPUTS,
        name=OUTPUTS,
        summary=truncate(", ".join(response.outputs), MAX_LABEL_CHARS),
        value=response.outputs,
    )
    summary = response.message or "; ".join(response.errors) or (asked.message if asked else "")
    return SkillResult(
        state=_RESULT_STATES[response.state],
        summary=truncate(summary or _default_summary(response), MAX_RESULT_SUMMARY_CHARS),
        artifacts=(*response.artifacts, outputs) if response.outputs else response.artifacts,
        tasks=response.tasks,
        questions=tuple(Question(**field.model_dump()) for field in asked.missing_fields) if asked else (),
        pocket=response.facts,
        log=response.events,
        pause_seconds=response.pause_seconds,
        retryable=response.retryable,
    )


def _default_summary(response: AgentResponse) -> str:
    if response.input_request is not None:
        return f"needs {', '.join(field.name for field in response.input_request.missing_fields)}"
    return response.state.value.replace("_", " ")


def as_response(
    result: SkillResult, state: TaskState, metadata: ResponseMetadata, *, reason: str = "", token: str | None = None
) -> AgentResponse:
    """Build the response for a caller from *result*, with the final *state* and *reason*."""
    stopped = state.value != result.state.value
    failed = stopped or state is TaskState.FAILED
    outputs = next((item.value for item in result.artifacts if item.type == OUTPUTS), None)
    fields = tuple(
        InputField.model_validate(question.model_dump(include=set(InputField.model_fields)))
        for question in result.questions
    )
    return AgentResponse(
        state=state,
        message=truncate(reason or result.summary, MAX_RESULT_SUMMARY_CHARS),
        outputs=outputs if isinstance(outputs, dict) and not failed else {},
        input_request=InputRequest(missing_fields=fields, message=result.summary) if fields and not stopped else None,
        tasks=() if stopped else result.tasks,
        artifacts=() if stopped else tuple(item for item in result.artifacts if item.type != OUTPUTS),
        errors=(reason or result.summary,) if failed else (),
        pause_seconds=None if stopped else result.pause_seconds,
        retryable=result.retryable and not stopped,
        resume_token=token,
        metadata=metadata,
    )
