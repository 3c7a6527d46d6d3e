"""Run a task by a model: the task becomes an assignment, the conclusion becomes a skill result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from fireswarm.capabilities import CapabilityContext, grants, registry_for
from fireswarm.capabilities.workspace.artifacts import merge_outputs
from fireswarm.capabilities.workspace.outputs import prepare_outputs
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.llm.step_names import answer_steps
from fireswarm.contracts.skills.artifact import ANSWER, OUTPUT_FOLDER, Artifact
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import SkillResult, SkillState
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import NO_DEADLINE, Task
from fireswarm.errors import DecisionInvalid, SkillFailed, ThoughtFailed
from fireswarm.mind import Assignment, Conclusion, ConclusionStatus, Mind, think
from fireswarm.mind.handlers.checks import CHECKS_FAILED, check_steps, last_try_step
from fireswarm.processes.confinement.paths.late_names import set_aside_left
from fireswarm.runs.assemble import file_tools, hide_denied, system_text
from fireswarm.runs.skill_runner import SkillRunner
from fireswarm.swarm.turn.colleagues import TurnColleagues, with_questions
from fireswarm.swarm.turn.engines.changes import note_folder, publish_changes
from fireswarm.swarm.turn.engines.passed_on import answer_of_plan
from fireswarm.swarm.turn.engines.permission import grant_for
from fireswarm.swarm.turn.engines.role_result import (
    RESULT_SCHEMA,
    RoleResult,
    carry_out,
    describe_roles,
    result_fault,
    revisions_of,
    show_plan,
)
from fireswarm.swarm.turn.facts import TurnMemory, facts_for
from fireswarm.swarm.turn.given.deliverable import named_files
from fireswarm.swarm.turn.given.files import InputFiles
from fireswarm.swarm.turn.given.for_model import inputs_of
from fireswarm.swarm.turn.given.workspace import denied_reads, named_workspace, with_whole_path
from fireswarm.swarm.turn.inputs import fetch_artifact
from fireswarm.swarm.turn.models import as_begun, models_to_choose
from fireswarm.swarm.turn.outputs import output_folder, publish_artifacts, publish_folder, publish_output
from fireswarm.swarm.turn.recorder import JournalRecorder
from fireswarm.swarm.turn.state import PLANNED, Turn
from fireswarm.swarm.turn.thread import Hearing, restore_outputs

HAND_OVER = (
    "Finish with a task in result.tasks that names the skill and has its inputs in context, or ask for missing "
    "input with ask_user."
)
"""Advice to a model that calls a skill which needs its own task."""


async def _nothing() -> dict[str, Any]:
    return {}


async def _round(read: RoleResult) -> dict[str, Any]:
    return {"changes": read.changes_plan, "answer_of": read.answer_of}


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """Runs a task by the role's model."""

    mind: Mind
    because: str = ""

    async def run(self, turn: Turn) -> SkillResult:
        """Run the model's loop and return its conclusion as a result. Raises the error that ended the loop."""
        task, card, mind = turn.task, turn.card, as_begun(turn, self.mind)
        phase = sum(step.startswith(f"{PLANNED}:") for step in turn.journal.known.finished)
        turn.journal.pending = turn.swarm.pending
        recorder = JournalRecorder(turn.journal, mind.redact, phase, mind.settings.model.stream)
        hearing = await Hearing.open(turn)
        if (passed_on := answer_of_plan(turn, phase, hearing)) is not None:
            return passed_on
        cwd, outputs = await _folders(turn, mind)
        await restore_outputs(turn, outputs)
        began = await note_folder(turn, named_workspace(turn))
        grant = grant_for(turn, cwd)
        inputs = await inputs_of(turn, phase)
        given = inputs.files.given
        uses, found = _uses(task, card), (outputs, given, hide_denied(grant), mind.redact)
        context = CapabilityContext(task.session_hash, cwd, turn.swarm.clock, turn.swarm.store, task.task_id, *found)
        async with registry_for(uses).open(uses, context) as resolved:
            assignment = Assignment(
                task=task.objective,
                system=system_text((*resolved.prompts, card.prompt, task.instructions, turn.swarm.protocol)),
                grant=grant,
                context=task.context,
                constraints=task.constraints,
                material=inputs.text,
                facts=partial(facts_for, turn, phase),
                memory=TurnMemory(turn.swarm.memory, task),
                skills=card.skills,
                named=task.skill,
                answers=task.answers,
                answered=task.answered,
                phase=phase,
                extra_decisions=task.extra_turns,
                check_result=lambda result: result_fault(result, turn, phase, inputs.files),
                run_skill=_skills_of(turn).run,
                tools={
                    **file_tools(grant, outputs, mind.redact, partial(publish_output, turn), given),
                    **resolved.tools,
                },
                outputs=outputs,
                inputs=given,
                colleagues=TurnColleagues(turn),
                checks=() if task.is_question else task.checks,
                max_revisions=task.max_revisions,
                expected_outcome=task.expected_outcome,
                plan_to_approve=partial(show_plan, turn) if task.review_plan else None,
                next_message=hearing.reply,
                steering=hearing.steering,
                result_schema=RESULT_SCHEMA,
                roles=describe_roles(turn),
                models=models_to_choose(turn),
                children=inputs.children,
                began_at=task.created_at,
                deadline=None if task.deadline == NO_DEADLINE else task.deadline,
            )
            conclusion = await think(mind, assignment, recorder)
        if conclusion.failed:
            raise await _error_of(turn, conclusion, phase)
        changes = await publish_changes(turn, named_workspace(turn), began, mind.redact)
        return await _conclude(turn, conclusion, phase, changes, outputs, inputs.files)


async def _conclude(
    turn: Turn, conclusion: Conclusion, phase: int, changes: Sequence[Artifact], outputs: Path, given: InputFiles
) -> SkillResult:
    """Publish the outputs, carry out what the model wants to change in its plan, and return its result."""
    own = replace(conclusion, outputs=tuple(_own_output(turn, output, outputs) for output in conclusion.outputs))
    files = (*await publish_folder(turn, outputs), *changes)
    result = _result(own, files, _carried_over(turn), given)
    if conclusion.status is ConclusionStatus.DELEGATING:
        tasks, turn.revisions = await with_questions(turn, result.tasks)
        result = result.model_copy(update={"tasks": tuple(tasks)})
    if result.tasks:
        result = result.model_copy(update={"tasks": tuple(with_whole_path(task, turn) for task in result.tasks)})
    if conclusion.status is ConclusionStatus.FINISHED and result.state is SkillState.DELEGATING:
        read = RoleResult.model_validate(conclusion.result)
        await carry_out(turn, read, phase)
        turn.plans, turn.revisions = True, revisions_of(turn, read)
        await turn.journal.steps.step(PLANNED, phase, partial(_round, read), idempotent=True, last=True)
    return result


async def _error_of(turn: Turn, conclusion: Conclusion, phase: int) -> Exception:
    """Return the error of a failed run. A retry repeats an invalid decision, one to give up, and checks that failed."""
    error = conclusion.error or ThoughtFailed(conclusion.reason, conclusion.answer)
    if isinstance(error, (DecisionInvalid, ThoughtFailed)):
        steps: Sequence[str] = ()
        if conclusion.reason in ("gave_up", DecisionInvalid.code):
            steps = answer_steps(conclusion.turns)
        elif conclusion.reason == CHECKS_FAILED:
            steps = check_steps(conclusion.turns, len(turn.task.checks))
            ended = f"{phase}/{last_try_step(conclusion.turns)}"
            await turn.journal.steps.step(ended, None, _nothing, idempotent=True, last=True)
        error.redo_steps = tuple(f"{phase}/{step}" for step in steps)
    return error


def _uses(task: Task, card: RoleCard) -> Sequence[CapabilityUse]:
    """Return the capabilities granted to the task. Planned and submitted tasks have different rules."""
    if task.parent_task_id is None:
        return grants.grants_for_submitted(card, task.capabilities)
    return grants.grants_for_planned(card, [use.id for use in task.capabilities])


def _skills_of(turn: Turn) -> SkillRunner:
    """Return the skills that the turn's model can run; their artifacts are published as the task's own."""

    async def publish(result: SkillResult, workdir: Path) -> tuple[SkillResult, tuple[Artifact, ...]]:
        result = await publish_artifacts(turn, result, workdir)
        return result, tuple([await fetch_artifact(turn, artifact) for artifact in result.artifacts])

    swarm, task = turn.swarm, turn.task
    seconds = min(turn.card.limits.idle_seconds, task.constraints.timeout_seconds or math.inf)
    return SkillRunner(
        turn.request,
        replace(swarm.code_rules, denied=denied_reads(turn), trusted=turn.card.trusted_skills),
        HAND_OVER,
        publish,
        named_workspace(turn) or swarm.settings.path(Path()),
        swarm.processes,
        turn.journal.hold,
        seconds,
        lambda: min(task.deadline, swarm.clock.now() + timedelta(seconds=seconds)),
    )


async def _folders(turn: Turn, mind: Mind) -> tuple[Path, Path]:
    """Return the folder for tools and commands, and the task's output folder; they are the same if no path is named.

    What commands of a killed worker made is set aside first.
    """
    await anyio.to_thread.run_sync(set_aside_left)
    named, outputs = named_workspace(turn), output_folder(turn.swarm, turn.task)
    container = mind.settings.runtime.confinement == "container"
    outputs = prepare_outputs(outputs, named or turn.swarm.workdir, container=container)
    return named or outputs, outputs


def _carried_over(turn: Turn) -> list[Artifact]:
    """Return the outputs of earlier turns of the task, which may be missing on this machine."""
    earlier = turn.task.result.artifacts if turn.task.result is not None else ()
    folder = f"{turn.task.session_hash}/{turn.task.task_id}/{OUTPUT_FOLDER}"
    return [artifact for artifact in earlier if artifact.uri and turn.swarm.blobs.holds(artifact.uri, folder)]


def _own_output(turn: Turn, output: SkillResult, folder: Path) -> SkillResult:
    """Return a result with the addresses under which this task stores files that an earlier one stored.

    Those that this task deleted are left out; only its first start knows that its *folder* is complete.
    """
    new = f"/{turn.task.task_id}/{OUTPUT_FOLDER}/"
    old = [f"/{task.task_id}/{OUTPUT_FOLDER}/" for task in turn.relatives.earlier]
    artifacts: list[Artifact] = []
    for artifact in output.artifacts:
        uri = artifact.uri
        for former in old:
            uri = uri.replace(former, new) if uri else uri
        if turn.lease.epoch > 1 or uri == artifact.uri or (folder / artifact.name).exists():
            artifacts.append(artifact.model_copy(update={"uri": uri}))
    return output.model_copy(update={"artifacts": tuple(artifacts)})


def _result(
    conclusion: Conclusion, files: Sequence[Artifact], carried_over: Sequence[Artifact], inputs: InputFiles
) -> SkillResult:
    """Convert a conclusion to a skill's result, with the outputs of its skills and the *files* of its output folder."""
    outputs = conclusion.outputs
    made = [artifact for output in outputs for artifact in output.artifacts]
    artifacts = [*merge_outputs([*carried_over, *made], files)]
    if conclusion.status is ConclusionStatus.WAITING:
        summary = truncate(conclusion.answer, MAX_RESULT_SUMMARY_CHARS)
        return SkillResult(
            state=SkillState.INPUT_REQUIRED,
            summary=summary,
            questions=conclusion.questions,
            artifacts=tuple(artifacts),
        )
    if conclusion.status is ConclusionStatus.DELEGATING:
        last = outputs[-1]
        update = {"state": SkillState.DELEGATING, "tasks": conclusion.tasks, "artifacts": tuple(artifacts)}
        return last.model_copy(update=update)
    result = RoleResult.model_validate(conclusion.result)
    answer = conclusion.answer.strip()
    if not (answer or result.goes_on):
        raise SkillFailed("the model finished without an answer")
    artifacts = [*named_files(inputs, result.deliver), *artifacts]
    artifacts.append(
        Artifact(type=ANSWER, name="answer", summary=truncate(answer, MAX_LABEL_CHARS), value=answer, mime="text/plain")
    )
    return SkillResult(
        state=SkillState.DELEGATING if result.goes_on else SkillState.COMPLETED,
        summary=truncate(answer or f"planned {count_noun(len(result.tasks), 'task')}", MAX_RESULT_SUMMARY_CHARS),
        artifacts=tuple(artifacts),
        signals=(*_all(outputs, "signals"), *result.signals),
        insights=(*_all(outputs, "insights"), *result.insights),
        facts=(*_all(outputs, "facts"), *result.facts),
        confidence=result.confidence,
        next_recommended_actions=result.next_recommended_actions,
        tasks=result.tasks,
        replies=tuple(_all(outputs, "replies")),
    )


def _all(outputs: Sequence[SkillResult], name: str) -> list[Any]:
    return [item for output in outputs for item in getattr(output, name)]
