"""The steps of a pipeline's run, with those that it keeps of the earlier run that it resumes."""

from __future__ import annotations

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import Store
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.definition import Pipeline
from fireswarm.pipelines.rounds import RESUMES, ResumedRun, count_kept
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot

MAX_RESUMED = 20
"""So many runs may resume one another; each step of them reads this many documents."""


async def read_steps(store: Store, run: Task, pipeline: Pipeline) -> list[Task]:
    """Return the tasks of a run's steps in the order of its plans, after those that it keeps of an earlier run.

    Raises InvalidInput if it resumes what is no run of the same pipeline in its session, or from a step that
    `count_kept` refuses.
    """
    own = await _children(store, run)
    return [*await read_kept(store, run, pipeline), *own]


async def read_kept(store: Store, run: Task, pipeline: Pipeline) -> list[Task]:
    """Return the tasks that a run keeps of the earlier run that it resumes. Raises InvalidInput like `read_steps`."""
    links: list[ResumedRun] = []
    runs = [run]
    while (link := resumed_run(runs[-1])) is not None:
        if len(links) == MAX_RESUMED:
            raise InvalidInput(f"more than {MAX_RESUMED} runs resume one another: run the pipeline again")
        links.append(link)
        runs.append(await _read_resumed(store, run, link))
    kept: list[Task] = []
    for link, resumed in zip(reversed(links), reversed(runs[1:]), strict=True):
        steps = [*kept, *await _children(store, resumed)]
        kept = steps[: count_kept(pipeline, [(each.plan_key, each.status.value) for each in steps], link.step)]
    return kept


def resumed_run(run: Task) -> ResumedRun | None:
    """Return the earlier run that a run resumes, or None. Raises InvalidInput for a context that names none."""
    given = run.context.get(RESUMES)
    if given is None:
        return None
    try:
        return ResumedRun.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(f"context.{RESUMES} names no run of a pipeline: {explain_validation(error)}") from error


async def _read_resumed(store: Store, run: Task, link: ResumedRun) -> Task:
    snapshot = await store.get(task_path(link.task_id))
    resumed = parse_task_snapshot(snapshot) if snapshot.data is not None else None
    fits = resumed is not None and run.skill and resumed.skill == run.skill and resumed.session_hash == run.session_hash
    if resumed is None or not fits:
        raise InvalidInput(f"the run resumes task {link.task_id}, which is no run of {run.skill} in this session")
    return resumed


async def _children(store: Store, run: Task) -> list[Task]:
    snapshots = await store.get_many([task_path(task_id) for task_id in run.children])
    tasks = [parse_task_snapshot(snapshot) for snapshot in snapshots if snapshot.data is not None]
    return [task for task in tasks if task.session_hash == run.session_hash and task.parent_task_id == run.task_id]
