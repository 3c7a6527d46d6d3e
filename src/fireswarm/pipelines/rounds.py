"""Plan the next round of a pipeline's run from the files of the earlier steps. Pure.

A round ends before a step whose condition has to be judged on files of the round, and before a step that needs two
steps of the round. Each round is one plan: the steps of a round run as tasks, each with the files of the step that it
needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field

from fireswarm.contracts.base import Contract
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.skills.skill import ChildResult, PlannedTask, Question, SkillRequest, SkillResult, SkillState
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.definition import Loop, Pipeline, PipelineStep, StepCondition, value_at
from fireswarm.pipelines.files import PROJECT, Carried
from fireswarm.pipelines.gates import CONDITIONS

RESUMES = "resumes"
"""Key of a run's context: the earlier run that it resumes, as a `ResumedRun`."""


class ResumedRun(Contract):
    """An earlier run of the same pipeline, by the task that planned it, and the first step that runs again."""

    task_id: str = Field(min_length=1, max_length=200)
    step: str = Field(min_length=1, max_length=60)


def count_kept(pipeline: Pipeline, tasks: Sequence[tuple[str, str]], step: str) -> int:
    """Return how many tasks of a run, from the first, precede *step*: a run that resumes it there keeps them.

    *tasks* are the keys and the statuses in the order of the plans. Raises InvalidInput for an unknown step, for one
    that the run has not reached, and if a task before it is not done.
    """
    order = {each.id: number for number, each in enumerate(pipeline.in_order)}
    if step not in order:
        raise InvalidInput(f"there is no step {step!r} to resume from; known: {', '.join(order)}")
    ran = [step_id(key) for key, _ in tasks]
    reached = [each for each in ran if each in order]
    if all(order[each] < order[step] for each in reached):
        last = max(reached, key=order.__getitem__, default="")
        instead = f"resume from {last} or a step before it" if last else "run the pipeline again"
        raise InvalidInput(f"the run has not reached the step {step!r}: {instead}")
    kept = next(number for number, each in enumerate(ran) if order.get(each, len(order)) >= order[step])
    for key, status in tasks[:kept]:
        if status != "done":
            raise InvalidInput(f"the step {key} before {step!r} is {status}: resume from {step_id(key)}")
    return kept


class Round(NamedTuple):
    """The tasks to plan next, by key and step. Without any, the run is done, or has failed for the reason ``failed``.

    ``context`` is given to each of the tasks.
    """

    steps: tuple[tuple[str, PipelineStep], ...] = ()
    failed: str = ""
    context: dict[str, Any] = {}


def next_round(pipeline: Pipeline, request: SkillRequest) -> SkillResult:
    """Return the next plan of the run to which *request*'s task belongs, or its end."""
    context, limits = {**request.context, **request.answers}, pipeline.limits.lower(request.limits)
    request = request.model_copy(update={"context": context, "limits": limits})
    if questions := _questions(pipeline, request):
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=questions[0].description, questions=questions)
    children, files = request.children, Carried.of(request)
    if stuck := [child for child in children if child.status != "done"]:
        reason = "; ".join(f"{child.key} is {child.status}: {child.summary}" for child in stuck)
        return SkillResult.failure(f"the run stopped: {reason}", escalated=True)
    if fault := _side_by_side_fault(pipeline, children) or _files_fault(request):
        return SkillResult.failure(fault, escalated=True)
    chosen = _choose_round(pipeline, children, files, request)
    if chosen.failed:
        ended = files.artifacts()
        return SkillResult(state=SkillState.FAILED, summary=chosen.failed, artifacts=ended, escalated=True)
    if not chosen.steps:
        return SkillResult(summary=children[-1].summary, artifacts=files.artifacts(), confidence=1.0)
    total = len(children) + len(chosen.steps)
    if total > request.limits.max_steps:
        reason = f"the run would need {total} steps; {request.limits.max_steps} are allowed"
        return SkillResult.failure(reason, escalated=True)
    named = ", ".join(key for key, _ in chosen.steps)
    return SkillResult(
        state=SkillState.DELEGATING,
        summary=f"steps {len(children) + 1} to {total}: {named}",
        tasks=_plan_tasks(pipeline, chosen, request),
        artifacts=files.artifacts(),
    )


def _questions(pipeline: Pipeline, request: SkillRequest) -> tuple[Question, ...]:
    """Return the questions for the inputs that are missing. An attachment is a source."""
    given = {name for name, value in request.context.items() if value not in (None, "")}
    if request.attachments:
        given.add("source")
    return tuple(Question(name=name, description=asked) for name, asked in pipeline.inputs.items() if name not in given)


def step_id(key: str) -> str:
    """Return the id of the step of a task, by the task's key: ``fix.2`` is the second task of a step."""
    return key.partition(".")[0]


def _side_by_side_fault(pipeline: Pipeline, children: Sequence[ChildResult]) -> str:
    """Return a fault if two steps of which neither needs the other have written one file, or ""."""
    above: dict[str, set[str]] = {}
    for step in pipeline.steps:
        needs = pipeline.needs_of(step)
        above[step.id] = {*needs, *(name for need in needs for name in above.get(need, ()))}
    writers: dict[str, str] = {}
    for child in children:
        step = step_id(child.key)
        for item in child.artifacts:
            if item.source_task_id != child.task_id:
                continue
            other = writers.get(item.name, step)
            related = other == step or other in above.get(step, ()) or step in above.get(other, ())
            if not related and not _loops(pipeline, {other, step}):
                return f"{other} and {step} both wrote {item.name}: add one to the `needs` of the other"
            writers[item.name] = step
    return ""


def _loops(pipeline: Pipeline, steps: set[str]) -> bool:
    """Return True if one of the *steps* belongs to a loop, whose tasks run one after another."""
    return any(
        step.loop is not None and steps & {step.id, step.loop.otherwise, *step.loop.again} for step in pipeline.steps
    )


def _files_fault(request: SkillRequest) -> str:
    """Return a fault if the steps of the run have written more files of the project than a run may, or ""."""
    written = {
        item.name
        for child in request.children
        for item in child.artifacts
        if item.name.startswith(PROJECT) and item.source_task_id == child.task_id
    }
    most = request.limits.max_changed_files
    return f"the run has changed {len(written)} files of the project; {most} are allowed" if len(written) > most else ""


def _choose_round(pipeline: Pipeline, children: Sequence[ChildResult], files: Carried, request: SkillRequest) -> Round:
    """Choose the next steps from the steps that have run and their results."""
    ran = [step_id(child.key) for child in children]
    order = pipeline.in_order
    last = max((number for number, step in enumerate(order) if step.id in ran), default=-1)
    planned: list[tuple[str, PipelineStep]] = []
    for number, step in enumerate(order):
        if step.loop is not None and number >= last:
            if planned:
                break
            if (chosen := _turn_of_loop(pipeline, step, step.loop, children, files, request)) is not None:
                return chosen
        elif step.loop is None and number > last:
            needed = _needs_in_round(pipeline, step, planned)
            if len(needed) > 1 or (step.when and needed):
                break
            if all(holds(condition, files) for condition in step.when):
                planned.append((step.id, step))
    return Round(tuple(planned))


def _needs_in_round(pipeline: Pipeline, step: PipelineStep, planned: Sequence[tuple[str, PipelineStep]]) -> list[str]:
    """Return the ids of the steps of the round that a step needs; those that were left out stand for what they need."""
    here = {each.id for _, each in planned}
    found: dict[str, None] = {}
    seen, waiting = set[str](), [*pipeline.needs_of(step)]
    while waiting:
        need = waiting.pop(0)
        if need in here:
            found[need] = None
        elif need not in seen:
            seen.add(need)
            waiting += pipeline.needs_of(pipeline.by_id[need])
    return [*found]


def _turn_of_loop(
    pipeline: Pipeline,
    step: PipelineStep,
    loop: Loop,
    children: Sequence[ChildResult],
    files: Carried,
    request: SkillRequest,
) -> Round | None:
    """Return the next tasks of a loop, or the end of the run after it; None if its condition holds."""
    ended = [child for child in children if step_id(child.key) == loop.otherwise]
    if ended:
        return Round(failed=ended[-1].summary or f"the run ended with {loop.otherwise}")
    if holds(loop.until, files):
        return None
    repeated = {each.id for each in pipeline.steps if each.loop is not None}
    tries = sum(step_id(child.key) == step.id for child in children)
    every = sum(step_id(child.key) in repeated for child in children)
    if tries < loop.most and every < request.limits.fix_loop_max:
        names = (step.id, *loop.again)
        counts = {name: sum(step_id(child.key) == name for child in children) + 1 for name in names}
        return Round(tuple((f"{name}.{counts[name]}", pipeline.by_id[name]) for name in names))
    why = f"{loop.because or f'{loop.until} does not hold'} after {tries} attempts to fix it"
    if not loop.otherwise:
        return Round(failed=f"the run stopped: {why}")
    return Round(((loop.otherwise, pipeline.by_id[loop.otherwise]),), context={"attempts": str(tries), "why": why})


def holds(condition: StepCondition, files: Carried) -> bool:
    """Return True if a condition holds for the files of a run. A file that is missing is null."""
    if condition.holds:
        return CONDITIONS[condition.holds](files)
    content = files.json(condition.file) if condition.file in files else None
    return value_at(content, condition.at) == condition.equals


def _plan_tasks(pipeline: Pipeline, chosen: Round, request: SkillRequest) -> tuple[PlannedTask, ...]:
    """Return the tasks of a round; each depends on the task of the round whose step it needs."""
    tasks: list[PlannedTask] = []
    before: list[tuple[str, PipelineStep]] = []
    for key, step in chosen.steps:
        needed = _needs_in_round(pipeline, step, before)
        if "." in key:  # the tasks of a loop run in its order
            needed = [each.id for _, each in before[-1:]]
        keys = {each.id: name for name, each in before}
        tasks.append(
            PlannedTask(
                key=key,
                assigned_to=step.role,
                skill=step.skill_name,
                objective=truncate(f"{step.id}: {request.objective}", MAX_OBJECTIVE_CHARS),
                context=_context_of(step, request) | chosen.context,
                depends_on=tuple(keys[name] for name in needed),
                handoff_reason=f"step {step.id} of the pipeline",
            )
        )
        before.append((key, step))
    return tuple(tasks)


def _context_of(step: PipelineStep, request: SkillRequest) -> dict[str, Any]:
    """Return what a step gets of the run's context: a step that reads files sees those that its context names only."""
    given = {**request.context, "objective": request.objective}
    context: dict[str, Any] = {"correlation_id": request.task_id}
    context |= {key: given[key] for key in step.reads if key in given}
    if "source" in step.reads and request.attachments:
        context.setdefault("source", request.attachments[0].uri)
    return context
