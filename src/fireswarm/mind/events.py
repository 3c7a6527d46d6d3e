"""Events of a run: start, actions, selected skills, end."""

from __future__ import annotations

from typing import Any

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.llm.decision import ActionStep, ActionType, StepExecutionResult
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind.assignment import Assignment, Conclusion, ConclusionStatus
from fireswarm.mind.mind import Mind
from fireswarm.redaction import spell

SHOWN_OUTPUT_CHARS = 20_000
"""Maximum length of an output in an event; the step's own record has all of it."""

SHOWN_CHARS = 500
"""Maximum length of each parameter of an action."""


def began(recorder: Recorder, mind: Mind, assignment: Assignment, profile: str) -> None:
    """Record the task, the model and the profile."""
    settings, client = mind.settings, mind.client
    recorder.event(
        EventType.RUN_STARTED,
        {
            "task": assignment.task,
            "mode": "dry_run" if assignment.dry_run else "run",
            "provider": client.model.provider if client else settings.model.provider,
            "model": client.model.name if client else settings.model.model_name,
            "profile": profile,
            "max_turns": settings.runtime.max_turns,
        },
    )


def record_step(recorder: Recorder, turn: int, skill: str, action: ActionStep, result: StepExecutionResult) -> None:
    """Record an action and its result."""
    recorder.event(
        EventType.SKILL_STEP_EXECUTED,
        {
            "turn": turn,
            "skill": skill,
            "type": action.type.value,
            "params": {key: spell(str(value)[:SHOWN_CHARS]) for key, value in action.params.items()},
            **result.model_dump(mode="json", exclude={"media"}),
            "stdout_summary": truncate(result.stdout_summary, SHOWN_OUTPUT_CHARS),
            "stderr_summary": truncate(result.stderr_summary, SHOWN_OUTPUT_CHARS),
        },
    )


def record_call(recorder: Recorder, turn: int, skill: str, call: ToolCall, result: StepExecutionResult) -> None:
    """Record a call that the run answered by itself, without an action."""
    action = ActionStep(type=ActionType.CALL_TOOL, params={"tool": call.name, "input": call.input})
    record_step(recorder, turn, skill, action, result)


def record_handover(recorder: Recorder, turn: int, earlier: str, skill: str, reason: str) -> None:
    """Record that *skill* replaces *earlier* (which may be empty), and the reason."""
    if earlier:
        recorder.event(EventType.SKILL_INVOCATION_FINISHED, {"skill": earlier, "reason": f"handoff: {reason}"})
    recorder.event(
        EventType.SKILL_INVOCATION_STARTED, {"skill": skill, "from": earlier, "reason": reason, "turn": turn}
    )


def record_end(recorder: Recorder, conclusion: Conclusion) -> None:
    """Record the end of the run: the last event."""
    if conclusion.skill:
        recorder.event(EventType.SKILL_INVOCATION_FINISHED, {"skill": conclusion.skill, "reason": conclusion.reason})
    failed = conclusion.failed
    payload: dict[str, Any] = {
        "reason": conclusion.reason,
        "turns": conclusion.turns,
        "skill": conclusion.skill,
        **conclusion.spend.fields(),
        ("error" if failed else "answer"): conclusion.answer,
    }
    if not failed:
        payload["mode"] = "dry_run" if conclusion.status is ConclusionStatus.DRY_RUN else conclusion.status.value
    recorder.event(EventType.RUN_FAILED if failed else EventType.RUN_FINISHED, payload)
