"""Run a skill's code as one journaled step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio.to_thread

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.settings.agent import PermissionSettings
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.content_hash import content_hash
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.skills.running.execute import run_skill
from fireswarm.skills.running.returned import as_returned
from fireswarm.swarm.parts import InlineSkill
from fireswarm.swarm.turn.engines.permission import waiting_for_approval
from fireswarm.swarm.turn.engines.unnamed import reason_not_answered, with_note
from fireswarm.swarm.turn.outcome import SkillReportedFailure
from fireswarm.swarm.turn.outputs import publish_artifacts
from fireswarm.swarm.turn.state import Turn

Execute = Callable[[SkillRequest], Awaitable[SkillResult]]
"""The work of a step: from the request to the result, without journaling or publishing."""


SKIPPED_SUMMARY = "Skipped by the operator. An earlier run started this step; its result is unknown."


@dataclass(frozen=True, slots=True)
class InlineEngine:
    """Runs a skill in the worker's process: a skill of the engine itself, or a function of the catalog."""

    name: str
    skill: InlineSkill
    because: str = "a skill of the engine"

    async def run(self, turn: Turn) -> SkillResult:
        """Run the skill as one journaled step. Returns the questions if a person has to approve a function first."""
        listed = turn.swarm.catalog.skills.get(self.name)
        if listed is not None and (asked := _approval_question(turn, listed)) is not None:
            return asked

        async def execute(request: SkillRequest) -> SkillResult:
            result = await self.skill(request)
            return as_returned(result, request, _refuse_no_type) if result.has_parts else result

        return await run_step(turn, self.name, execute, idempotent=listed is None or listed.idempotent)


@dataclass(frozen=True, slots=True)
class CodeEngine:
    """Runs a skill's entry in its own process, if the skill can answer the objective or ``best_effort`` is set."""

    skill: Skill
    because: str

    async def run(self, turn: Turn) -> SkillResult:
        """Run the skill as one journaled step; after a crash, a journaled result is not computed again.

        Raises SkillReportedFailure for an objective that needs a model.
        """
        note = await _note_of(turn, self.skill)

        async def execute(request: SkillRequest) -> SkillResult:
            result = await run_in_process(turn, self.skill, request)
            return with_note(result, note) if note else result

        return await run_journaled(turn, self.skill, execute, because=self.because)


def _refuse_no_type(kind: str) -> str:
    """Return "": a function of the operator's program may make artifacts of every type."""
    return ""


async def _note_of(turn: Turn, skill: Skill) -> str:
    """Return the note for a result that does not answer all of the objective, or ""."""
    alone = len(turn.card.skills) == 1
    return await anyio.to_thread.run_sync(lambda: reason_not_answered(turn.task, skill, alone=alone))


async def run_in_process(turn: Turn, skill: Skill, request: SkillRequest) -> SkillResult:
    """Run the skill's entry in a child process, in the request's workdir."""
    make_state_folder(request.workdir)
    swarm = turn.swarm
    layers = (swarm.settings, turn.card, turn.task.constraints)
    denied = DeniedReads(tuple(rule for layer in layers for rule in layer.permissions.deny), turn.objective_folder)
    rules = replace(swarm.code_rules, denied=denied, trusted=turn.card.trusted_skills)
    return await run_skill(skill, request, swarm.processes, turn.journal.hold, rules)


async def run_journaled(turn: Turn, skill: Skill, execute: Execute, *, because: str) -> SkillResult:
    """Journal the chosen skill, then run *execute* as one journaled step. *because*: the reason for using no model.

    Returns the questions if a person has to approve the skill first.
    """
    if (asked := _approval_question(turn, skill)) is not None:
        return asked
    journal, named = turn.journal, turn.task.skill is not None
    content = await anyio.to_thread.run_sync(content_hash, skill.folder)
    journal.note(
        "skill_chosen", skill=skill.name, version=skill.version, hash=content, named=named, without_model=because
    )
    await journal.flush()
    return await run_step(turn, skill.name, execute, idempotent=skill.idempotent)


def _approval_question(turn: Turn, skill: Skill) -> SkillResult | None:
    """Return a question for a person if *skill* needs approval, or None if it may run.

    Raises InvalidInput if it may not run.
    """
    return waiting_for_approval(turn, skill, turn.request) if skill.outside or _is_restricted(turn) else None


def _is_restricted(turn: Turn) -> bool:
    """Return False if no rule and no profile can refuse a skill, which is the usual case."""
    settings, limits = turn.swarm.settings, turn.task.constraints
    free = PermissionSettings(allow=settings.permissions.allow)
    return bool(
        limits.read_only
        or settings.runtime.profile != "permissive"
        or turn.card.permissions
        or limits.permissions
        or settings.permissions not in (free, free.model_copy(update={"default": "allow"}))
    )


async def run_step(turn: Turn, name: str, execute: Execute, *, idempotent: bool) -> SkillResult:
    """Run *execute* as one journaled step and publish its artifacts. A finished step is replayed from the journal.

    Raises SkillReportedFailure for a failed result.
    """
    request = turn.request
    # A task's objective and context never change; its answers, children and turn do. The same answers to a repeated
    # question belong to another turn.
    inputs: list[Any] = [request.answers, [[child.task_id, child.status] for child in request.children]]
    if turn.task.turn:
        inputs.append(["turn", turn.task.turn])
    if request.conversation is not None:
        inputs.append(request.conversation.turn)
    published: list[SkillResult] = []

    async def step() -> dict[str, Any]:
        result = await execute(request)
        kept = await publish_artifacts(turn, result, request.workdir)
        if result.state is SkillState.FAILED:
            raise SkillReportedFailure(kept)
        published.append(kept)
        return published[0].model_dump(mode="json", exclude_defaults=True)

    # A conversation in another store changes before the task is settled, so the result must be journaled first.
    last = turn.conversation.settles_with_task
    skipped = {"summary": SKIPPED_SUMMARY}
    journaled = await turn.journal.steps.step(
        f"skill:{name}", inputs, step, idempotent=idempotent, last=last, skipped=skipped
    )
    return published[0] if published else SkillResult.model_validate(journaled)
