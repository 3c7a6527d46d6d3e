"""One leased task to its outcome: gather, choose a skill, run it as a journaled step, publish, conclude.

Whatever goes wrong becomes an Outcome here; only cancellation passes through.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.contracts.swarm.outcome import Done, Failed, Handoff, Outcome, Retry, Snooze, Waiting
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult, TaskStatus
from fireswarm.errors import (
    BudgetExceeded,
    FireswarmError,
    GateFailed,
    InvalidInput,
    LeaseLost,
    ModelError,
    ModelUnavailable,
    NoProgress,
    NotFound,
    SkillFailed,
    StepUncertain,
    StoreError,
    ThoughtFailed,
)
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.terms import terms_of
from fireswarm.skills.routing import router
from fireswarm.skills.running.execute import run_skill
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.records.journal import Journal
from fireswarm.swarm.roles.hooks import hooks_of
from fireswarm.swarm.swarm import Swarm
from fireswarm.swarm.turn.by_advice import run_step
from fireswarm.swarm.turn.by_model import reason_to_skip_model, run_by_model
from fireswarm.swarm.turn.conversation import Talk, joins
from fireswarm.swarm.turn.exchange import Exchange


class TurnEnd(NamedTuple):
    """A turn's outcome and the writes that are committed with it."""

    outcome: Outcome
    also: tuple[Write, ...]


class _SaidFailed(FireswarmError):
    """A skill reported that it failed; ``result`` says how."""

    code = "skill_said_failed"

    def __init__(self, result: SkillResult) -> None:
        super().__init__(result.summary)
        self.result = result


async def open_journal(held: HeldLease, swarm: Swarm) -> Journal:
    """Open the journal of a lease's run."""
    journal = await Journal.open(
        swarm.store, swarm.clock, swarm.blobs, held.task, held.epoch, held.owner, held.claimed_at
    )
    journal.unstored = swarm.unstored
    journal.hold = partial(swarm.board.assure, held)
    return journal


async def run_turn(held: HeldLease, swarm: Swarm) -> TurnEnd:
    """Work on a leased task until it is done, fails, waits or hands work over."""
    journal = await open_journal(held, swarm)
    also: list[Write] = []
    try:
        outcome = await _turn(held, swarm, journal, also)
    except LeaseLost:
        raise
    except Exception as error:  # the task boundary: every failure becomes an outcome, and is journaled
        also.clear()
        outcome = _failure(error)
        journal.note("turn_failed", error=_describe_error(error))
    return TurnEnd(outcome, (*also, *_closing(journal, outcome)))


async def _turn(held: HeldLease, swarm: Swarm, journal: Journal, also: list[Write]) -> Outcome:
    task = held.task
    if task.duplicate_of is not None:
        return await _same_as(task, swarm)
    hooks = hooks_of(task.assigned_to)
    exchange = Exchange(swarm, held)
    request = await exchange.request(await hooks.facts(swarm.memory, task))
    if exchange.envelope is not None:
        also += swarm.mailbox.open_envelope_writes(task)
    skill, why_not = _skill_of(task, swarm)
    talk = await Talk.open(swarm, held, skill) if skill is not None else None
    if talk is not None:
        if talk.stop is not None:
            also.clear()
            return talk.stop
        request = talk.with_conversation(request)
    result = await _run(task, swarm, journal, request, exchange, skill, why_not)
    if talk is not None:
        if (refused := talk.contract_breach(result)) is not None:
            also.clear()
            return refused
        also += await talk.keep(result)
    also += hooks.effects(swarm.memory, task, result)
    also += swarm.memory.remember(task, result.facts)
    if result.replies:
        also += await swarm.mailbox.replies(task, result.replies)
    outcome = _conclude(task, result, talk.terms.input_request_jsonschema if talk is not None else {})
    if isinstance(outcome, Handoff):
        births = swarm.board.births(held, outcome)
        also += swarm.mailbox.handoffs(task, births, outcome.result, outcome.notes)
    return outcome


async def _same_as(task: Task, swarm: Swarm) -> Outcome:
    """End a twin with the result of the task that did the work."""
    original = parse_task_snapshot(await swarm.store.get(task_path(str(task.duplicate_of))))
    if original.status is TaskStatus.DONE and original.result is not None:
        return Done(original.result)
    reason = f"the task with the same objective, {original.task_id}, is {original.status.value}"
    return Failed(f"{reason}: submit this one again with --again to run it by itself", StatusReason.ESCALATED)


def _skill_of(task: Task, swarm: Swarm) -> tuple[Skill | None, str]:
    """The skill that works by its own code, and why no model is asked; None where one is, or the engine does it."""
    if (task.skill or "") in swarm.inline:
        return None, ""
    card, why_not = swarm.roles[task.assigned_to], reason_to_skip_model(task, swarm)
    if task.skill is not None and not why_not:
        named = swarm.catalog.get(task.skill)
        why_not = "a skill with a conversation of its own" if named.entry and terms_of(named) is not None else ""
    if not why_not:
        return None, ""
    return router.choose(task.objective, task.skill, card.skills, swarm.catalog), why_not


async def _run(
    task: Task,
    swarm: Swarm,
    journal: Journal,
    request: SkillRequest,
    exchange: Exchange,
    skill: Skill | None,
    why_not: str,
) -> SkillResult:
    # Objective and context never change under a task's id; what a later turn has more is this.
    inputs: list[Any] = [request.answers, [[child.task_id, child.status] for child in request.children]]
    if request.conversation is not None:
        inputs.append(request.conversation.turn)
    inline = swarm.inline.get(task.skill or "")
    if inline is not None:
        execute, name, idempotent = inline, str(task.skill), True
    elif skill is None:
        return await run_by_model(task, swarm, swarm.roles[task.assigned_to], journal, request, exchange)
    else:
        named = task.skill is not None
        journal.note("skill_chosen", skill=skill.name, version=skill.version, named=named, without_model=why_not)
        await journal.flush()
        execute, name, idempotent = _in_process(skill, swarm, journal), skill.name, skill.idempotent

    made: list[SkillResult] = []

    async def step() -> dict[str, Any]:
        result = await execute(request)
        if result.state is SkillState.FAILED:
            raise _SaidFailed(result)
        made.append(await exchange.publish(result, request.workdir))
        return made[0].model_dump(mode="json", exclude_defaults=True)

    # What is kept elsewhere is kept before the task is settled: by then the journal has to have the result.
    last = request.conversation is None or joins(swarm)
    journaled = await journal.step(f"skill:{name}", inputs, step, idempotent=idempotent, last=last)
    return made[0] if made else SkillResult.model_validate(journaled)


def _in_process(skill: Skill, swarm: Swarm, journal: Journal) -> Any:
    async def execute(request: SkillRequest) -> SkillResult:
        request.workdir.mkdir(parents=True, exist_ok=True)
        return await run_skill(skill, request, swarm.processes, journal.hold)

    async def step(request: SkillRequest) -> SkillResult:
        assert skill.execution_mode is not None
        return await run_step(skill, skill.execution_mode, request, swarm, journal, execute)

    return execute if skill.execution_mode is None else step


def _conclude(task: Task, result: SkillResult, schema: JsonObject) -> Outcome:
    outcome = TaskResult(
        summary=result.summary,
        artifacts=result.artifacts,
        signals=result.signals,
        insights=result.insights,
        confidence=result.confidence,
        next_recommended_actions=result.next_recommended_actions,
    )
    match result.state:
        case SkillState.COMPLETED:
            return Done(outcome)
        case SkillState.DELEGATING:
            return Handoff(result.tasks, resume=True, result=outcome)
        case SkillState.INPUT_REQUIRED:
            if not result.questions:
                raise SkillFailed(f"task {task.task_id}: the skill requires input but asks no question")
            return Waiting(StatusReason.INPUT_REQUIRED, result.summary, result.questions, schema)
        case SkillState.PAUSED if result.pause_seconds is not None:
            return Snooze(result.pause_seconds, result.summary)
        case SkillState.PAUSED:
            return Waiting(StatusReason.PAUSED, result.summary)
        case SkillState.ADVICE_REQUIRED:
            raise SkillFailed("the skill asks for advice, and its SKILL.md names no execution_mode")
        case SkillState.FAILED:
            raise _SaidFailed(result)


def _failure(error: Exception) -> Outcome:
    match error:
        case _SaidFailed(result=result):
            if result.escalated:
                return Failed(result.summary, StatusReason.ESCALATED)
            return Retry(result.summary) if result.retryable else Failed(result.summary)
        case StepUncertain():
            return Failed(str(error), StatusReason.ESCALATED)
        case BudgetExceeded():
            return Waiting(StatusReason.BUDGET_EXCEEDED, str(error))
        case ModelUnavailable(retry_after=after):
            return Retry(str(error), after)
        case ModelError() | ThoughtFailed() | NoProgress() | GateFailed():
            return Failed(str(error), StatusReason.ESCALATED)
        case InvalidInput() | NotFound():
            return Failed(str(error))
        case StoreError():
            return Retry(str(error)) if error.retryable else Failed(str(error))
        case _:
            return Retry(
                _describe_error(error).splitlines()[0] if not isinstance(error, FireswarmError) else str(error)
            )


def _describe_error(error: Exception) -> str:
    if isinstance(error, FireswarmError):
        return str(error)
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_tb(error.__traceback__, limit=-6))


def _closing(journal: Journal, outcome: Outcome) -> Sequence[Write]:
    match outcome:
        case Done(result=result) | Handoff(result=result):
            return journal.closing(RunStatus.COMPLETED, result.summary, result, None)
        case Waiting(summary=summary):
            return journal.closing(RunStatus.COMPLETED, f"waits: {summary}", None, None)
        case Retry(error=error) | Failed(error=error):
            return journal.closing(RunStatus.ERROR, error.splitlines()[0] if error else "failed", None, error[:4_000])
        case _:
            return journal.closing(RunStatus.COMPLETED, outcome.summary, None, None)
