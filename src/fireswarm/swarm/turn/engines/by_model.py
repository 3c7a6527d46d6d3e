"""Run a task by a model: the task becomes an assignment, the conclusion becomes a skill result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fireswarm.capabilities import CapabilityContext, grants, registry_for
from fireswarm.capabilities.workspace.artifacts import merge_outputs
from fireswarm.capabilities.workspace.outputs import prepare_outputs
from fireswarm.contracts.base import Contract, explain_validation
from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER, Artifact, Confidence, Signal
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import Fact, PlannedTask, SkillRequest, SkillResult, SkillState
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import DecisionInvalid, InvalidInput, PolicyRefused, SkillFailed, ThoughtFailed
from fireswarm.llm.step_names import answer_steps
from fireswarm.mind import Assignment, Conclusion, ConclusionStatus, Mind, think
from fireswarm.runs.assemble import file_tools, system_text
from fireswarm.runs.skill_runner import SkillRunner
from fireswarm.swarm.turn.engines.permission import grant_for
from fireswarm.swarm.turn.facts import TurnMemory, facts_for
from fireswarm.swarm.turn.inputs import fetch_artifact, with_texts
from fireswarm.swarm.turn.outputs import output_folder, publish_artifacts, publish_folder, publish_output
from fireswarm.swarm.turn.recorder import JournalRecorder
from fireswarm.swarm.turn.state import Turn

MATERIAL_CHARS = 24_000
"""Maximum characters of artifacts and children in the prompt. A skill with code gets all of them."""

PLANNED = "planned"
"""Journal step that marks a plan as handed out. The turns after it are a new phase with separate steps."""


HAND_OVER = (
    "Finish with a task in result.tasks that names the skill and has its inputs in context, or ask for missing "
    "input with ask_user."
)
"""Advice to a model that calls a skill which needs its own task."""


class RoleResult(Contract):
    """The structured result with which a role may finish; ROLE.md says which parts to fill."""

    tasks: tuple[PlannedTask, ...] = ()
    facts: tuple[Fact, ...] = Field(default=(), max_length=100)
    signals: tuple[Signal, ...] = Field(default=(), max_length=100)
    insights: tuple[str, ...] = Field(default=(), max_length=40)
    confidence: Confidence | None = None
    next_recommended_actions: tuple[str, ...] = Field(default=(), max_length=20)


RESULT_SCHEMA = RoleResult.model_json_schema()


async def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """Runs a task by the role's model."""

    mind: Mind
    because: str = ""

    async def run(self, turn: Turn) -> SkillResult:
        """Run the model's loop and return its conclusion as a result. Raises the error that ended the loop."""
        task, card, mind = turn.task, turn.card, self.mind
        phase = sum(step.startswith(f"{PLANNED}:") for step in turn.journal.known.finished)
        turn.journal.pending = turn.swarm.pending
        recorder = JournalRecorder(turn.journal, mind.redact, phase, mind.settings.model.stream)
        cwd, outputs = _folders(turn, mind)
        grant = grant_for(turn, cwd)
        context = CapabilityContext(
            task.session_hash, cwd, turn.swarm.clock, turn.swarm.store, task.task_id, outputs=outputs
        )
        uses = _uses(task, card)
        async with registry_for(uses).open(uses, context) as resolved:
            texts = (*resolved.prompts, card.prompt, task.instructions, turn.swarm.protocol)
            assignment = Assignment(
                task=task.objective,
                system=system_text(texts),
                grant=grant,
                context=task.context,
                constraints=task.constraints,
                material=_material(turn.request, phase),
                facts=partial(facts_for, turn, phase),
                memory=TurnMemory(turn.swarm.memory, task),
                skills=card.skills,
                named=task.skill,
                answers=task.answers,
                answered=task.answered,
                phase=phase,
                extra_decisions=task.extra_turns,
                check_result=lambda result: _result_fault(result, turn, phase),
                run_skill=_skills_of(turn).run,
                tools={**file_tools(grant, outputs, mind.redact.text, partial(publish_output, turn)), **resolved.tools},
                outputs=outputs,
                result_schema=RESULT_SCHEMA,
                roles=tuple(role for role in turn.request.roles if not _route_fault(turn, role)),
                children={child.key: await with_texts(turn, child) for child in turn.request.children},
            )
            conclusion = await think(mind, assignment, recorder)
        if conclusion.failed:
            raise _with_redo_steps(conclusion, phase)
        result = _result(conclusion, await publish_folder(turn, outputs), _carried_over(turn))
        if conclusion.status is ConclusionStatus.FINISHED and result.tasks:
            await turn.journal.steps.step(PLANNED, phase, _nothing, idempotent=True, last=True)
        return result


def _with_redo_steps(conclusion: Conclusion, phase: int) -> Exception:
    """Return the error of a failed run. After an invalid decision, a retry requests that decision again."""
    error = conclusion.error or ThoughtFailed(conclusion.reason, conclusion.answer)
    if isinstance(error, DecisionInvalid):
        error.redo_steps = tuple(f"{phase}/{step}" for step in answer_steps(conclusion.turns))
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

    swarm = turn.swarm
    return SkillRunner(turn.request, swarm.code_rules, HAND_OVER, publish, swarm.processes, turn.journal.hold)


def _folders(turn: Turn, mind: Mind) -> tuple[Path, Path]:
    """Return the folder for tools and commands, and the task's output folder; they are the same if no path is named."""
    named, outputs = _named_workspace(turn), output_folder(turn.swarm, turn.task)
    container = mind.settings.runtime.confinement == "container"
    outputs = prepare_outputs(outputs, named or turn.swarm.workdir, container=container)
    return named or outputs, outputs


def _carried_over(turn: Turn) -> list[Artifact]:
    """Return the outputs of earlier turns of the task, which may be missing on this machine."""
    earlier = turn.task.result.artifacts if turn.task.result is not None else ()
    folder = f"{turn.task.session_hash}/{turn.task.task_id}/{OUTPUT_FOLDER}"
    return [artifact for artifact in earlier if artifact.uri and turn.swarm.blobs.holds(artifact.uri, folder)]


def _named_workspace(turn: Turn) -> Path | None:
    """Return the folder that the task's context names, or None."""
    request = turn.request
    named = request.context.get("path")
    if isinstance(named, str) and named:
        path = Path(named.removeprefix("file://")).expanduser()
        path = path if path.is_absolute() else turn.swarm.settings.path(path)
        if path.is_dir():
            return path.resolve()
        if path.is_file():
            return path.parent.resolve()
    return None


def _material(request: SkillRequest, phase: int) -> str:
    """Return artifacts and other inputs as bounded JSON; from the second phase on, with the plan's tasks."""
    brought: dict[str, Any] = {
        "expected_outcome": request.expected_outcome,
        "artifacts": [_small(artifact) for artifact in request.artifacts],
        "signals": [signal.model_dump(mode="json", exclude_defaults=True) for signal in request.signals[:60]],
        "attachments": [attachment.model_dump(mode="json") for attachment in request.attachments],
    }
    if phase:
        brought["tasks_of_your_plan"] = [
            child.model_dump(mode="json", exclude_defaults=True, exclude={"artifacts"})
            | {"artifacts": [_small(artifact) for artifact in child.artifacts]}
            for child in request.children
        ]
    else:
        brought["roles"] = list(request.roles)
    text = json.dumps({key: value for key, value in brought.items() if value}, ensure_ascii=False, default=str)
    cut = f" [cut, {len(text):,} characters in all]" if len(text) > MATERIAL_CHARS else ""
    return f"# Inputs\n{text[:MATERIAL_CHARS]}{cut}"


def _small(artifact: Artifact) -> dict[str, Any]:
    shown = artifact.model_dump(mode="json", exclude_none=True, exclude={"value", "sha256"})
    if artifact.value is not None:
        shown["value"] = truncate(json.dumps(artifact.value, ensure_ascii=False, default=str), MAX_RESULT_SUMMARY_CHARS)
    return shown


def _route_fault(turn: Turn, to: str) -> str:
    """Return the reason why the role may not hand work to the role *to*, or ""."""
    try:
        turn.swarm.mailbox.policy.check_route(turn.task.assigned_to, to)
    except PolicyRefused as error:
        return str(error)
    return ""


def _result_fault(result: Mapping[str, Any], turn: Turn, phase: int) -> str:
    """Return the error of a structured result, worded for the model, or ""."""
    swarm = turn.swarm
    try:
        read = RoleResult.model_validate(result)
    except ValidationError as error:
        return f"result does not fit: {explain_validation(error)}"
    if not read.tasks:
        return ""
    if phase:
        return "your plan has already been carried out: finish with the answer, without tasks"
    unknown = [
        f"{task.key}: {task.skill}" for task in read.tasks if task.skill and task.skill not in swarm.catalog.skills
    ]
    if unknown:
        return f"there is no such skill: {', '.join(unknown)}; omit skill to let the role choose"
    try:
        swarm.board.check_plan(read.tasks)
        if fault := next((fault for task in read.tasks if (fault := _route_fault(turn, task.assigned_to))), ""):
            return fault
        for task in read.tasks:
            grants.grants_for_planned(swarm.roles[task.assigned_to], task.capabilities)
    except InvalidInput as error:
        return str(error)
    return ""


def _result(conclusion: Conclusion, files: Sequence[Artifact], carried_over: Sequence[Artifact]) -> SkillResult:
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
    if not (answer or result.tasks):
        raise SkillFailed("the model finished without an answer")
    artifacts.append(
        Artifact(
            type="answer", name="answer", summary=truncate(answer, MAX_LABEL_CHARS), value=answer, mime="text/plain"
        )
    )
    return SkillResult(
        state=SkillState.DELEGATING if result.tasks else SkillState.COMPLETED,
        summary=truncate(answer or f"planned {len(result.tasks)} tasks", MAX_RESULT_SUMMARY_CHARS),
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
