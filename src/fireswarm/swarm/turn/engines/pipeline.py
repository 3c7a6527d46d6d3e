"""The inputs of a pipeline step: the files of its own run, which only the pipeline itself has planned."""

from __future__ import annotations

from fireswarm.contracts.skills.artifact import PIPELINE, PIPELINE_FILE, PIPELINE_STEPS, Artifact
from fireswarm.contracts.skills.skill import SkillRequest
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.routing import router
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.turn.state import Turn


async def request_of_step(turn: Turn, skill: Skill) -> SkillRequest:
    """Return the turn's request without the files of a pipeline that tasks outside of the step's run made.

    A run is the task that plans the steps, and the steps. A step that takes its inputs from its caller may run alone,
    and then gets no files of a pipeline. Raises InvalidInput for another step of the node pipeline in a task that the
    pipeline did not plan: its code takes the files for those of the earlier steps.
    """
    planner = turn.task if skill.name not in PIPELINE_STEPS else await _planner_of(turn)
    if planner is None and not turn.conversation.answer_schema:
        raise InvalidInput(
            f"{skill.name} is a step of the node pipeline, and the pipeline did not plan this task: run all steps with "
            f"`swarm submit --pipeline node`, or plan a task with the skill {PIPELINE}"
        )
    request, members = turn.request, {planner.task_id, *planner.children} if planner is not None else set[str]()
    children = tuple(
        child.model_copy(update={"artifacts": _own_files(child.artifacts, members)}) for child in request.children
    )
    return request.model_copy(update={"artifacts": _own_files(request.artifacts, members), "children": children})


async def _planner_of(turn: Turn) -> Task | None:
    """Return the task of the pipeline that planned the turn's task, or None."""
    parent_id = turn.task.parent_task_id
    snapshot = await turn.swarm.store.get(task_path(parent_id)) if parent_id else None
    if snapshot is None or snapshot.data is None:
        return None
    parent = parse_task_snapshot(snapshot)
    own = parent.session_hash == turn.task.session_hash and turn.task.task_id in parent.children
    return parent if own and _runs_pipeline(turn, parent) else None


def _runs_pipeline(turn: Turn, parent: Task) -> bool:
    """Return True if the code of the pipeline plans the children of *parent*."""
    swarm, name = turn.swarm, parent.skill
    if name is None and (swarm.mind is None or swarm.mind.client is None) and parent.assigned_to in swarm.roles:
        name = router.choose(parent.objective, None, swarm.roles[parent.assigned_to].skills, swarm.catalog).name
    return name == PIPELINE and swarm.catalog.get(PIPELINE).execution_mode is not None


def _own_files(artifacts: tuple[Artifact, ...], members: set[str]) -> tuple[Artifact, ...]:
    return tuple(item for item in artifacts if item.type != PIPELINE_FILE or item.source_task_id in members)
