"""Convert a result or an error to the outcome of a turn."""

from __future__ import annotations

import traceback

from fireswarm.contracts.skills.skill import SkillResult, SkillState
from fireswarm.contracts.swarm.outcome import Done, Failed, Handoff, Outcome, Retry, Snooze, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskResult, TaskStatus
from fireswarm.errors import (
    BudgetExceeded,
    FireswarmError,
    GateFailed,
    InvalidInput,
    ModelError,
    ModelPaused,
    ModelUnavailable,
    NewerDocument,
    NoProgress,
    NotFound,
    SandboxRefused,
    SkillFailed,
    StepUncertain,
    StoreError,
    ThoughtFailed,
)
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.turn.given.workspace import check_planned_paths
from fireswarm.swarm.turn.models import choose_models
from fireswarm.swarm.turn.state import Turn

STORE_PAUSE_SECONDS = 2.0
"""Pause after a failure of the store, which is no fault of the task."""


class SkillReportedFailure(FireswarmError):
    """A skill reported a failure; ``result`` has the details."""

    code = "skill_said_failed"

    def __init__(self, result: SkillResult) -> None:
        super().__init__(result.summary)
        self.result = result


def outcome_of(turn: Turn, result: SkillResult) -> Outcome:
    """Return the outcome of a result. Raises SkillFailed for a result that contradicts its state."""
    task_result = _task_result(result)
    match result.state:
        case SkillState.COMPLETED:
            return Done(task_result)
        case SkillState.DELEGATING:
            children = tuple(turn.relatives.children)
            return Handoff(
                choose_models(turn, check_planned_paths(result.tasks, turn)),
                result=task_result,
                revisions=tuple(turn.revisions),
                children=children,
                plans=turn.plans,
                unseen=turn.unseen,
            )
        case SkillState.INPUT_REQUIRED:
            if not result.questions:
                raise SkillFailed(f"task {turn.task.task_id}: the skill requires input but asks no question")
            names = [question.name for question in result.questions]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise SkillFailed(
                    f"task {turn.task.task_id}: the skill asks two questions named {', '.join(twice)}: "
                    "give each its own name, since a skill gets answers by name"
                )
            schema = turn.conversation.answer_schema
            approval = any(question.approval is not None for question in result.questions)
            reason = StatusReason.APPROVAL_REQUIRED if approval else StatusReason.INPUT_REQUIRED
            return Waiting(reason, result.summary, result.questions, {} if approval else schema, task_result)
        case SkillState.PAUSED if result.pause_seconds is not None:
            return Snooze(result.pause_seconds, result.summary)
        case SkillState.PAUSED:
            return Waiting(StatusReason.PAUSED, result.summary, result=task_result)
        case SkillState.ADVICE_REQUIRED:
            raise SkillFailed("the skill asks for advice, but its SKILL.md has no execution_mode")
        case SkillState.FAILED:
            raise SkillReportedFailure(result)


def _task_result(result: SkillResult) -> TaskResult:
    return TaskResult(
        summary=result.summary,
        artifacts=result.artifacts,
        signals=result.signals,
        insights=result.insights,
        confidence=result.confidence,
        next_recommended_actions=result.next_recommended_actions,
    )


async def end_children(turn: Turn) -> None:
    """Cancel the children of a task that is done which have not ended: nothing would ever continue them."""
    for child in turn.relatives.children:
        if child.task_id in turn.task.children and not child.status.terminal:
            await turn.journal.seconds_left()  # raises LeaseLost: another agent may go on with the task
            await turn.swarm.board.cancel(child.task_id, "its objective ended", tree=True)


async def outcome_of_original(turn: Turn) -> Outcome:
    """Return the outcome of a duplicate: the result of the task that owns the work."""
    snapshot = await turn.swarm.store.get(task_path(str(turn.task.duplicate_of)))
    original = parse_task_snapshot(snapshot)
    if original.session_hash != turn.task.session_hash:
        raise InvalidInput(f"duplicate_of names {original.task_id}, a task of another session")
    if original.status is TaskStatus.DONE and original.result is not None:
        return Done(original.result)
    reason = f"the task with the same objective, {original.task_id}, is {original.status.value}"
    return Failed(f"{reason}: submit this one again with --again to run it separately", StatusReason.ESCALATED)


def outcome_of_error(error: Exception) -> Outcome:
    """Return the outcome of an error: retry, failure, or blocked with a reason."""
    match error:
        case SkillReportedFailure(result=result):
            return _outcome_of_failure(result)
        case StepUncertain(step=step):
            return Failed(str(error), StatusReason.ESCALATED, uncertain_step=step)
        case BudgetExceeded() | SandboxRefused():
            over = isinstance(error, BudgetExceeded)
            return Waiting(StatusReason.BUDGET_EXCEEDED if over else StatusReason.NEEDS_CONFINEMENT, str(error))
        case ModelPaused(retry_after=after) | NewerDocument(retry_after=after):
            return Retry(str(error), after, counts=False, schema_version=getattr(error, "version", None))
        case ModelUnavailable(retry_after=after):
            return Retry(str(error), after)
        case ModelError() | ThoughtFailed() | NoProgress() | GateFailed():
            return Failed(str(error), StatusReason.ESCALATED, redo_steps=error.redo_steps)
        case InvalidInput() | NotFound():
            return Failed(str(error))
        case StoreError():
            return Retry(str(error), STORE_PAUSE_SECONDS, counts=False) if error.retryable else Failed(str(error))
        case FireswarmError():
            return Retry(str(error))
        case _:
            return Retry(describe_error(error).splitlines()[0])


def _outcome_of_failure(result: SkillResult) -> Outcome:
    """Return the outcome of a failure that a skill reported."""
    if result.needs_model:
        return Waiting(StatusReason.NEEDS_MODEL, result.summary)
    if result.needs_confinement:
        return Waiting(StatusReason.NEEDS_CONFINEMENT, result.summary)
    if result.escalated:
        return Failed(result.summary, StatusReason.ESCALATED, result=_task_result(result))
    return Retry(result.summary) if result.retryable else Failed(result.summary, result=_task_result(result))


def describe_error(error: Exception) -> str:
    """Return the error's message.

    For an error from outside fireswarm, it also has the type and the last stack frames.
    """
    if isinstance(error, FireswarmError):
        return str(error)
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_tb(error.__traceback__, limit=-6))
