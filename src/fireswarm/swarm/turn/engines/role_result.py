"""The structured result of a role, its faults in words for the model, and the changes of a plan that it asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field, ValidationError

from fireswarm.capabilities import grants
from fireswarm.contracts.base import Contract, explain_validation
from fireswarm.contracts.llm.tool_schema import tool_schema
from fireswarm.contracts.skills.artifact import Confidence, Signal
from fireswarm.contracts.skills.capability import DEFAULT_CAPABILITIES
from fireswarm.contracts.skills.skill import REVIEW, Fact, PlannedTask
from fireswarm.contracts.swarm.outcome import Revision
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.contracts.text_page import fence_lines
from fireswarm.errors import Conflict, InvalidInput, TerminalTask
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.rounds import base_key, find_awaited
from fireswarm.swarm.turn.given.deliverable import unknown_paths
from fireswarm.swarm.turn.given.files import InputFiles
from fireswarm.swarm.turn.given.workspace import with_whole_path
from fireswarm.swarm.turn.models import choose_models, describe_cost
from fireswarm.swarm.turn.state import Turn

MAX_FEEDBACK_CHARS = 8_000


class TaskNote(Contract):
    """A task of the plan by its key, and what it is told."""

    key: str = Field(description="key of a task of your plan")
    note: str = Field(min_length=1, max_length=MAX_FEEDBACK_CHARS, description="what it is to do now, and why")


class RoleResult(Contract):
    """The structured result with which a role may finish; ROLE.md says which parts to fill."""

    tasks: tuple[PlannedTask, ...] = ()
    revise: tuple[TaskNote, ...] = Field(
        default=(),
        max_length=50,
        description="finished tasks of your plan to send back: each goes on with its own conversation and files, "
        "as task KEY~2",
    )
    retry: tuple[TaskNote, ...] = Field(
        default=(), max_length=50, description="failed tasks of your plan to run again, each told the note"
    )
    cancel: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="keys of tasks of your plan to cancel, with the tasks that depend on them",
    )
    wait: bool = Field(default=False, description="true: wait for the tasks of your plan that are at work")
    answer_of: str = Field(
        default="",
        description="key of the task whose answer and files are the result as they are: if all tasks are done, the "
        "objective ends with them and you are not asked again",
    )
    deliver: tuple[str, ...] = Field(
        default=(),
        max_length=50,
        description="paths of input files that are the result, such as inputs/w1/report.md; "
        "default: your own files, else those of the plan's last tasks",
    )
    facts: tuple[Fact, ...] = Field(default=(), max_length=100)
    signals: tuple[Signal, ...] = Field(default=(), max_length=100)
    insights: tuple[str, ...] = Field(default=(), max_length=40)
    confidence: Confidence | None = None
    next_recommended_actions: tuple[str, ...] = Field(default=(), max_length=20)

    @property
    def goes_on(self) -> bool:
        """True if the plan goes on: the role runs again later."""
        return self.changes_plan or self.wait

    @property
    def changes_plan(self) -> bool:
        """True for a round of the plan; to wait for the tasks at work is none."""
        return bool(self.tasks or self.revise or self.retry or self.cancel)


RESULT_SCHEMA = tool_schema(RoleResult, without={"fact_id", "learned_at", "fallback", "max_attempts"})
"""The shape of a result for models: what the store sets, and what operators decide, is not offered."""


def result_fault(result: Mapping[str, Any], turn: Turn, phase: int, files: InputFiles) -> str:
    """Return the error of a structured result, worded for the model, or "". *phase* is the number of earlier plans."""
    try:
        read = RoleResult.model_validate(result)
    except ValidationError as error:
        return f"result does not fit: {explain_validation(error)}"
    if turn.task.is_question and (read.goes_on or read.cancel):
        return "you were asked a question: only answer it"
    if turn.task.is_review and [item.name for item in read.signals].count(REVIEW) != 1:
        return f"a review needs one signal named {REVIEW}: strength 1 if the work is accepted, 0 if it has to be mended"
    if fault := _fault_of_answer(read, turn):
        return fault
    if unknown := unknown_paths(files, read.deliver):
        return f"deliver names {', '.join(unknown)}, which are no input files: list_files with path inputs names them"
    try:
        _check_changes(read, turn, phase)
        _check_needed(read, turn)
        _check_tasks(read.tasks, turn, phase)
    except InvalidInput as error:
        return str(error)
    return ""


def _fault_of_answer(read: RoleResult, turn: Turn) -> str:
    """Return why the answer cannot be that of the task which the result names, or ""."""
    if not read.answer_of:
        return ""
    if not read.goes_on:
        return "answer_of names a task that is still at work: this plan is done, so finish with your own answer"
    keys = {base_key(key) for key in planned_children(turn).keys() - {*read.cancel}}
    known = sorted(keys | {task.key for task in read.tasks})
    if read.answer_of in known:
        return ""
    return f"answer_of names {read.answer_of!r}, which is no task of your plan; it has: {', '.join(known)}"


def _check_changes(read: RoleResult, turn: Turn, phase: int) -> None:
    """Raise InvalidInput for changes of earlier tasks that are not possible."""
    if turn.journal.steps.has_begun(*_acceptance(phase, read)):
        return  # an earlier start of this turn has begun to carry them out
    children = planned_children(turn)
    rounds, used = turn.swarm.settings.worker.plan_rounds, turn.used_rounds
    named = (*(item.key for item in (*read.revise, *read.retry)), *read.cancel)
    if unknown := [key for key in named if key not in children]:
        raise InvalidInput(f"your plan has no task {', '.join(unknown)}; it has: {', '.join(children) or 'none'}")
    if used >= rounds and read.changes_plan:
        raise InvalidInput(f"your plan has had {used} rounds, and {rounds} are allowed: finish with what there is")
    for item in read.revise:
        if (status := children[item.key].status) is not TaskStatus.DONE:
            raise InvalidInput(f"task {item.key} is {status.value}: only a task that is done can be sent back")
        _check_not_at_work(children, item.key)
    for item in read.retry:
        if children[item.key].uncertain_step:
            raise InvalidInput(f"task {item.key} waits for a person's decision about a step that may have taken effect")
        if not children[item.key].given_up:
            raise InvalidInput(f"task {item.key} is {children[item.key].status.value}: only a failed task is retried")
    if read.wait and not find_awaited([child for key, child in children.items() if key not in read.cancel]):
        raise InvalidInput("no task of your plan is at work: change the plan, or finish")


def _check_not_at_work(children: Mapping[str, Task], key: str) -> None:
    """Raise InvalidInput for a task whose conversation another one goes on with now: they have one output folder."""
    thread = children[key].thread
    for other, child in children.items():
        if child.thread == thread and child.status not in (TaskStatus.DONE, TaskStatus.CANCELED):
            raise InvalidInput(f"task {key} is being revised as {other}: wait for that, retry it, or cancel it first")


def _check_needed(read: RoleResult, turn: Turn) -> None:
    """Raise InvalidInput for new tasks that depend on a task which failed, or which the same result cancels."""
    children = planned_children(turn)
    gone = {*_with_dependents(read.cancel, children.values())}
    again = {item.key for item in read.retry}
    lost = {key for key, child in children.items() if child.given_up or child.status is TaskStatus.CANCELED} - again
    for task in read.tasks:
        if behind := sorted({*task.depends_on} & gone):
            raise InvalidInput(f"task {task.key!r} would depend on {', '.join(behind)}, which you cancel")
        if behind := sorted({*task.depends_on} & lost):
            raise InvalidInput(
                f"task {task.key!r} depends on {', '.join(behind)}, which failed: retry it, or plan anew"
            )


def _check_tasks(tasks: Sequence[PlannedTask], turn: Turn, phase: int) -> None:
    """Raise InvalidInput for tasks that cannot be created."""
    swarm = turn.swarm
    if not tasks:
        return
    unknown = [f"{task.key}: {task.skill}" for task in tasks if task.skill and task.skill not in swarm.catalog.skills]
    if unknown:
        raise InvalidInput(f"there is no such skill: {', '.join(unknown)}; omit skill to let the role choose")
    for task in tasks:
        if task.skill and (planner := swarm.pipelines.planner_of(task.skill)):
            raise InvalidInput(f"{task.skill} is a step of a pipeline: plan one task with the skill {planner} instead")
    choose_models(turn, tasks)
    swarm.board.check_plan(tasks, turn.relatives.children if phase else ())
    for task in tasks:
        if fault := route_fault(turn, task.assigned_to):
            raise InvalidInput(fault)
        with_whole_path(task, turn)
        _check_checks(task, turn)
        grants.grants_for_planned(swarm.roles[task.assigned_to], task.capabilities)


def _check_checks(task: PlannedTask, turn: Turn) -> None:
    """Raise InvalidInput for a check that cannot run."""
    for check in task.checks:
        fault = turn.swarm.fault_of_check(check) or (route_fault(turn, check.role) if check.role else "")
        if fault:
            raise InvalidInput(f"a check of task {task.key!r} cannot run: {fault}")


def planned_children(turn: Turn) -> dict[str, Task]:
    """Return the children that the role planned, by key; delegated ones are left out."""
    return {child.plan_key: child for child in turn.relatives.children if not child.is_call}


def route_fault(turn: Turn, to: str) -> str:
    """Return the reason why the role may not hand work to the role *to*, or ""."""
    return turn.swarm.mailbox.policy.route_fault(turn.task.assigned_to, to)


def show_plan(turn: Turn, result: Mapping[str, Any]) -> str:
    """Return the tasks of a structured result for a person who approves them, one block each; "" if there are none."""
    read = RoleResult.model_validate(result)
    blocks = [_show_task(turn, task) for task in read.tasks]
    blocks += [_show_field(f"+ {item.key} again", item.note) for item in (*read.revise, *read.retry)]
    blocks += [f"- {key}" for key in read.cancel]
    return "\n".join([*blocks, *([f"The answer is that of {read.answer_of}."] if read.answer_of else [])])


def _show_task(turn: Turn, task: PlannedTask) -> str:
    after = f", after {', '.join(task.depends_on)}" if task.depends_on else ""
    lines = [f"+ {task.key} ({task.assigned_to}{after})", *(f"+   {line}" for line in task.objective.splitlines())]
    lines += [_show_field("+   in", str(task.context["path"]), "")] if task.context.get("path") else []
    given = task.model_dump(mode="json", exclude_defaults=True, exclude=_SHOWN_FIRST)
    given["context"] = {name: value for name, value in task.context.items() if name != "path"}
    lines += [_show_field(f"+   {name.replace('_', ' ')}", value) for name, value in given.items() if value]
    for check in task.checks:
        parts = check.model_dump(mode="json", exclude_defaults=True)
        lines.append(_show_field("+   check", parts if len(parts) > 1 and not check.role else str(check)))
    cost = describe_cost(turn, task.assigned_to, task)
    lines += [f"+  {cost}"] if cost else []
    return "\n".join(lines)


_SHOWN_FIRST = {"key", "assigned_to", "objective", "depends_on", "context", "checks", "model"}
"""Fields of a planned task that are shown in a form of their own; all others are shown with their names."""


def _show_field(words: str, value: Any, mark: str = ":") -> str:
    """Return a field of a plan for a person: each further line is marked, so that none can look like another task."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    first, *more = text.splitlines() or [""]
    return "\n".join([f"{words}{mark} {first}", *(f"+   {line}" for line in more)])


def describe_roles(turn: Turn) -> dict[str, str]:
    """Return the roles to which the turn's role may hand work, each with what it does, can use, and costs."""
    swarm = turn.swarm
    described: dict[str, str] = {}
    for name in turn.request.roles:
        card = swarm.roles[name]
        if route_fault(turn, name):
            continue
        skills = f" Skills: {', '.join(card.skills)}." if card.skills else ""
        uses = [use.id for use in card.capabilities if use not in DEFAULT_CAPABILITIES]
        more = f" Capabilities: {', '.join(uses)}." if uses else ""
        offers = f" A plan may add: {', '.join(use.id for use in card.offers)}." if card.offers else ""
        described[name] = f"{' '.join(card.description.split())}{skills}{more}{offers}{describe_cost(turn, name)}"
    return described


async def carry_out(turn: Turn, read: RoleResult, phase: int) -> None:
    """Cancel and retry tasks of the plan, each as a recorded step, and read the children again."""
    board, children = turn.swarm.board, planned_children(turn)

    async def once(what: str, key: str, run: Any) -> None:
        async def work() -> dict[str, Any]:
            try:
                await run()
            except (TerminalTask, InvalidInput, Conflict) as error:  # it changed meanwhile: the next round sees it
                return {"left": str(error)}
            return {}

        await turn.journal.steps.step(f"{phase}/{what}:{key}", None, work, idempotent=True)

    if not (read.cancel or read.retry):
        return
    await turn.journal.steps.step(*_acceptance(phase, read), _nothing, idempotent=True)
    for key in _with_dependents(read.cancel, children.values()):
        task_id = children[key].task_id
        await once("cancel", key, lambda task_id=task_id: board.cancel(task_id, "by its planner", tree=True))
    for item in read.retry:
        child, role = children[item.key], turn.task.assigned_to
        note = f"The {role} who planned this task sends it back after its failure: {_fence_note(item)}"
        await once("retry", item.key, lambda child=child, note=note: board.retry_with_note(child, note))
    snapshots = await turn.swarm.store.get_many([task_path(child.task_id) for child in turn.relatives.children])
    fresh = [parse_task_snapshot(item) for item in snapshots if item.data is not None]
    turn.relatives = replace(turn.relatives, children=fresh)


def _acceptance(phase: int, read: RoleResult) -> tuple[str, Any]:
    """Return the step that records that the changes of a round are possible: they change what a repetition sees."""
    return f"{phase}/accepted", read.model_dump(mode="json", include={"retry", "cancel", "revise"})


async def _nothing() -> dict[str, Any]:
    return {}


def revisions_of(turn: Turn, read: RoleResult) -> tuple[Revision, ...]:
    """Return the finished tasks that go back, with what they are told."""
    children, role = planned_children(turn), turn.task.assigned_to
    return tuple(
        Revision(children[item.key], f"The {role} who planned this task sends it back: {_fence_note(item)}")
        for item in read.revise
    )


def _fence_note(item: TaskNote) -> str:
    return fence_lines(item.note, "the planner of this task")


def _with_dependents(keys: Iterable[str], children: Iterable[Task]) -> list[str]:
    """Return the keys, and those of the tasks that depend on them, directly or not."""
    every = list(children)
    found = {child.task_id: child.plan_key for child in every if child.plan_key in keys}
    while more := [child for child in every if child.task_id not in found and found.keys() & {*child.depends_on}]:
        found |= {child.task_id: child.plan_key for child in more}
    return list(found.values())
