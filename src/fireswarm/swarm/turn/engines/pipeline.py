"""Plan the steps of a pipeline, and find the inputs of a step: the files of its own run, which this engine planned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import anyio.to_thread

from fireswarm.contracts.skills.artifact import PIPELINE_FILE, Artifact
from fireswarm.contracts.skills.limits import BackboneSettings
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.definition import SUFFIX, Pipeline, PipelineStep
from fireswarm.pipelines.rounds import next_round, step_id
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.routing import router
from fireswarm.skills.running.returned import as_returned
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.records.pipeline_runs import read_kept
from fireswarm.swarm.turn.engines.by_code import run_journaled
from fireswarm.swarm.turn.inputs import child_result
from fireswarm.swarm.turn.state import Turn


@dataclass(frozen=True, slots=True)
class PipelineEngine:
    """Plans the next steps of a pipeline from the files of the last ones, without a model."""

    skill: Skill
    because: str

    async def run(self, turn: Turn) -> SkillResult:
        """Plan the next round as one journaled step, or end the run."""
        pipeline = turn.swarm.pipelines.by_skill[self.skill.name].pipeline
        kept = await read_kept(turn.swarm.store, turn.task, pipeline)
        if kept:  # the run resumes an earlier one
            children = [await child_result(turn, task) for task in kept]
            turn.request = turn.request.model_copy(update={"children": (*children, *turn.request.children)})
        members = {turn.task.task_id, *turn.task.children, *(task.task_id for task in kept)}
        limits = turn.swarm.settings.backbone
        turn.request = _with_own_files(turn.request, members).model_copy(update={"limits": limits})

        async def execute(request: SkillRequest) -> SkillResult:
            result = await anyio.to_thread.run_sync(partial(next_round, pipeline, request))
            return as_returned(result, request, _refuse_no_type)

        return await run_journaled(turn, self.skill, execute, because=self.because)


def _refuse_no_type(kind: str) -> str:
    """Return "": the planner passes on the files of the steps."""
    return ""


class StepInputs(NamedTuple):
    """What a step works with: its request, with the files of its own run only, and its definition."""

    request: SkillRequest
    step: PipelineStep


async def inputs_of_step(turn: Turn, skill: Skill) -> StepInputs:
    """Return the turn's request without the files of a pipeline that tasks outside of the step's run made.

    A run is the task that plans the steps, the steps, and those that it keeps of a run that it resumes. A step that
    takes its inputs from its caller may run alone, and then gets no files of a pipeline. Raises InvalidInput for
    another step of a pipeline in a task that the pipeline did not plan: its code takes the files for those of the
    earlier steps.
    """
    settings = turn.swarm.settings.backbone
    planner, pipeline = await _planner_of(turn)
    if planner is not None and pipeline is not None:
        step = pipeline.by_id.get(step_id(turn.task.plan_key))
        if step is None or step.skill_name != skill.name:
            raise InvalidInput(
                f"{planner.skill} has no step {step_id(turn.task.plan_key)!r} with the skill {skill.name} any "
                "more: its file was changed during the run; submit the pipeline again"
            )
        kept = await read_kept(turn.swarm.store, planner, pipeline)
        members = {planner.task_id, *planner.children, *(task.task_id for task in kept)}
        return _inputs(turn.request, members, step, pipeline.limits.lower(settings))
    owner = turn.swarm.pipelines.planner_of(skill.name)
    if owner and not turn.conversation.answer_schema:
        raise InvalidInput(
            f"{skill.name} is a step of a pipeline, and the pipeline did not plan this task: run all steps with `swarm "
            f"pipeline run {owner.removesuffix(SUFFIX)}`, or plan a task with the skill {owner}"
        )
    step = turn.swarm.pipelines.step_of(skill.name) or PipelineStep(id="alone", skill=skill.name)
    members = set[str]() if owner else {turn.task.task_id, *turn.task.children}
    return _inputs(turn.request, members, step, settings)


def _inputs(request: SkillRequest, members: set[str], step: PipelineStep, limits: BackboneSettings) -> StepInputs:
    return StepInputs(_with_own_files(request, members).model_copy(update={"limits": limits}), step)


async def _planner_of(turn: Turn) -> tuple[Task, Pipeline] | tuple[None, None]:
    """Return the task that planned the turn's task, with its pipeline; (None, None) if no pipeline did."""
    parent_id = turn.task.parent_task_id
    snapshot = await turn.swarm.store.get(task_path(parent_id)) if parent_id else None
    if snapshot is None or snapshot.data is None:
        return None, None
    parent = parse_task_snapshot(snapshot)
    own = parent.session_hash == turn.task.session_hash and turn.task.task_id in parent.children
    planned_by = turn.swarm.pipelines.by_skill.get(_skill_of(turn, parent)) if own else None
    return (parent, planned_by.pipeline) if planned_by is not None else (None, None)


def _skill_of(turn: Turn, parent: Task) -> str:
    """Return the name of the skill that runs the task *parent* without a model, or ""."""
    swarm, name = turn.swarm, parent.skill
    if name is None and (swarm.mind is None or swarm.mind.client is None) and parent.assigned_to in swarm.roles:
        name = router.choose(parent.objective, None, swarm.roles[parent.assigned_to].skills, swarm.catalog).name
    return name or ""


def _with_own_files(request: SkillRequest, members: set[str]) -> SkillRequest:
    children = tuple(
        child.model_copy(update={"artifacts": _own_files(child.artifacts, members)}) for child in request.children
    )
    return request.model_copy(update={"artifacts": _own_files(request.artifacts, members), "children": children})


def _own_files(artifacts: tuple[Artifact, ...], members: set[str]) -> tuple[Artifact, ...]:
    return tuple(item for item in artifacts if item.type != PIPELINE_FILE or item.source_task_id in members)
