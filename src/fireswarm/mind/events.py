"""Events of a run: start, actions, selected skills, end."""

from __future__ import annotations

from typing import Any

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.llm.decision import StepExecutionResult
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.swarm.event import EventType
from fireswarm.llm.calls import FINISH, action_of, action_of_tool
from fireswarm.mind.assignment import Assignment, Conclusion, ConclusionStatus
from fireswarm.mind.calls.results import RETRIED, CallResult, Step
from fireswarm.mind.mind import Mind
from fireswarm.redaction import spell

SHOWN_OUTPUT_CHARS = 20_000
"""Maximum length of an output in an event; the record of the step has the full output."""

SHOWN_CHARS = 500
"""Maximum length of each parameter of an action."""


def record_start(recorder: Recorder, mind: Mind, assignment: Assignment) -> None:
    """Record the task, the model and the profile."""
    settings, client = mind.settings, mind.client
    recorder.event(
        EventType.RUN_STARTED,
        {
            "task": assignment.task,
            "mode": "dry_run" if assignment.dry_run else "run",
            "provider": client.model.provider if client else settings.model.provider,
            "model": client.model.name if client else settings.model.model_name,
            "profile": assignment.grant.profile,
            "max_turns": settings.runtime.max_turns,
            **({"effort": settings.model.effort} if settings.model.effort else {}),
            **({"fallback": list(settings.model.fallback)} if settings.model.fallback else {}),
        },
    )


def record_step(recorder: Recorder, decision: int, skill: str, step: Step, result: CallResult) -> None:
    """Record a call and its result in the form of the specification. The tool ``finish`` has the event of the end."""
    if step.call.name == FINISH:
        return
    action = action_of(step.call) if result.acted else action_of_tool(step.call)
    executed = StepExecutionResult(
        step_id=f"{step.question}{RETRIED}" if result.retry else step.name,
        exit_code=result.exit_code,
        stdout_summary=truncate(result.text, SHOWN_OUTPUT_CHARS),
        stderr_summary=truncate(result.errors, SHOWN_OUTPUT_CHARS),
        retry_count=result.retry,
        status=result.status,
    )
    recorder.event(
        EventType.SKILL_STEP_EXECUTED,
        {
            "turn": decision,
            "skill": skill,
            "type": action.type.value,
            "params": {key: spell(str(value)[:SHOWN_CHARS]) for key, value in action.params.items()},
            **executed.model_dump(mode="json", exclude={"media"}),
        },
    )


def record_handover(recorder: Recorder, decision: int, earlier: str, skill: str, reason: str) -> None:
    """Record that *skill* replaces *earlier* (which may be empty), and the reason."""
    if earlier:
        recorder.event(EventType.SKILL_INVOCATION_FINISHED, {"skill": earlier, "reason": f"handoff: {reason}"})
    recorder.event(
        EventType.SKILL_INVOCATION_STARTED, {"skill": skill, "from": earlier, "reason": reason, "turn": decision}
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
