"""Commands about tasks: submit, list, show, watch, cancel, retry."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.operate import TaskId, operate, say_if_nobody_runs
from fireswarm.cli.shared.options import (
    AsJson,
    Limit,
    Project,
    Root,
    Session,
    StoreUri,
    ago,
    board_settings,
    console,
    errors,
    one_of,
    pairs,
    print_json,
    run_async,
    settings_for,
    style_status,
    suggest_role,
)
from fireswarm.cli.shared.submit_options import (
    After,
    Again,
    Attached,
    BestEffort,
    CapabilityUses,
    ConstraintPairs,
    ContextPairs,
    Deadline,
    EffortNamed,
    Expected,
    FallbackNamed,
    ModelNamed,
    OnChildFailure,
    ReviewPlan,
    parse_attachments,
    parse_constraints,
    parse_uses,
    places,
    with_best_effort,
)
from fireswarm.cli.shared.tables import cell, table
from fireswarm.cli.watch import progress
from fireswarm.cli.watch.answer import print_answer
from fireswarm.cli.watch.event_line import SEVERITY
from fireswarm.cli.watch.follow import RunPrinter
from fireswarm.cli.watch.task_view import draw, look
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.swarm.task import ChildFailure, StatusReason, Submitted, Task, TaskSpec, TaskStatus
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.definition import SUFFIX
from fireswarm.settings import Settings
from fireswarm.swarm.records.artifacts import read_answer, with_present_uris

Level = Annotated[
    str, typer.Option("--level", metavar="debug|info|warning|error", help="Lowest severity of events to show.")
]

Wait = Annotated[
    bool, typer.Option("--wait", help="Follow the task to its end; exit code 1 unless all tasks are done.")
]


def submit(
    objective: Annotated[str, typer.Argument(help="Objective in natural language.")],
    role: Annotated[str, typer.Option("--role", help="Role that executes the task.")] = "architect",
    path: Annotated[
        Path | None, typer.Option("--path", help="Folder or file the task is about (context.path).")
    ] = None,
    context: ContextPairs = None,
    skill: Annotated[str | None, typer.Option("--skill", help="Skill to use; default: the swarm chooses one.")] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", help="Pipeline to run, such as node: its steps are skills.")
    ] = None,
    source: Annotated[Path | None, typer.Option("--source", help="File or folder a pipeline works on.")] = None,
    model: ModelNamed = None,
    effort: EffortNamed = None,
    fallback: FallbackNamed = None,
    capability: CapabilityUses = None,
    priority: Annotated[
        int, typer.Option("--priority", min=1, max=10, help="Priority from 1 to 10; 10 is most urgent.")
    ] = 5,
    deadline: Deadline = None,
    depends_on: After = None,
    again: Again = "",
    constraint: ConstraintPairs = None,
    attach: Attached = None,
    expect: Expected = "",
    best_effort: BestEffort = False,
    on_child_failure: OnChildFailure = ChildFailure.REPLAN,
    review_plan: ReviewPlan = False,
    wait: Wait = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Submit an objective. The same objective and context in one session give the same task."""
    settings = settings_for(root, store, project, session)
    spec = make_spec(
        objective=objective,
        assigned_to=role,
        session_hash=settings.session,
        skill=_skill(skill, pipeline),
        model=model,
        effort=effort,
        fallback=fallback,
        capabilities=parse_uses(capability),
        context=pairs(context, "--context") | places(path=path, source=source) | with_best_effort(best_effort),
        priority=priority,
        deadline=deadline,
        depends_on=tuple(depends_on or ()),
        fresh_key=again,
        constraints=parse_constraints(constraint),
        attachments=parse_attachments(attach),
        expected_outcome=expect,
        on_child_failure=on_child_failure,
        review_plan=review_plan,
    )

    if run_async(lambda: _submit(settings, spec, wait=wait, as_json=as_json)) is not TaskStatus.DONE:
        raise typer.Exit(1)


async def _submit(settings: Settings, spec: TaskSpec, *, wait: bool, as_json: bool) -> TaskStatus:
    async with Swarm.open(settings=settings) as swarm:
        return await submit_task(swarm, spec, wait=wait, as_json=as_json)


async def submit_task(swarm: Swarm, spec: TaskSpec, *, wait: bool, as_json: bool) -> TaskStatus:
    """Submit *spec* and print it; with *wait*, follow it to its end. Return the status of the whole objective."""
    started = time.monotonic()
    submitted = await swarm.submit(spec)
    await _say_submitted(swarm, submitted, as_json)
    if not wait:
        return TaskStatus.DONE
    chain = submitted.task.trace.chain_id
    printer = None if as_json else RunPrinter(swarm, chain, console)
    tasks = await progress.follow(swarm, chain, live=not as_json, runs=printer)
    return await progress.report(swarm, chain, tasks, time.monotonic() - started)


def _skill(named: str | None, pipeline: str | None) -> str | None:
    """Return the named skill; for a pipeline, the skill that plans its steps."""
    if pipeline is None:
        return named
    if named is not None:
        raise InvalidInput("--skill and --pipeline exclude each other: a pipeline chooses the skills of its steps")
    return f"{pipeline}{SUFFIX}"


async def _say_submitted(swarm: Swarm, submitted: Submitted, as_json: bool) -> None:
    task = submitted.task
    if as_json:
        print_json({"created": submitted.created, "task": with_present_uris(task, swarm.parts.blobs)})
    else:
        what = "submitted" if submitted.created else f"already exists ({task.status.value}), not submitted again:"
        console.print(f"{what} {task.task_id}", soft_wrap=True)
        if task.status.terminal:
            console.prose("to do the same work again, add --again with any word")
    if task.status is TaskStatus.QUEUED:
        await say_if_nobody_runs(swarm, task.assigned_to)


MOST_SEARCHED = 1_000
"""Number of blocked tasks in which those with one reason are searched, as many as one call lists."""


def _filter_of(status: str | None) -> tuple[str | None, str | None]:
    """Return the status and the reason that ``--status`` names, in any form in which a command prints them."""
    above, mark, below = (status or "").partition("/")
    if mark and one_of(above, "--status", TaskStatus) != TaskStatus.BLOCKED:
        raise InvalidInput(f"--status {status!r}: only blocked tasks have a reason, such as blocked/dead_letter")
    if status is None or not mark:
        word = one_of(status, "--status", [*TaskStatus, *StatusReason])
        return (word, None) if word is None or word in list(TaskStatus) else (TaskStatus.BLOCKED, word)
    return TaskStatus.BLOCKED, one_of(below, "--status blocked/", StatusReason)


def tasks(
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            help="Filter by status: queued, in_progress, blocked, done or canceled; or by the reason of a blocked "
            "task, such as dead_letter.",
        ),
    ] = None,
    role: Annotated[str | None, typer.Option("--role", help="Filter by role.")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Only the tasks of this schedule.")] = None,
    session: Session = None,
    limit: Limit = 30,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, most recently changed first."""
    wanted, reason = _filter_of(status)

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            most = MOST_SEARCHED if reason else limit
            if schedule is None:
                tasks = await swarm.tasks(limit=most, status=wanted, role=role, session=session)
            else:
                of_schedule = await swarm.schedules.tasks(schedule, limit=MOST_SEARCHED if status or role else limit)
                tasks = [
                    task for task in of_schedule if wanted in (None, task.status) and role in (None, task.assigned_to)
                ]
            if not tasks:
                suggest_role(role, swarm.parts.roles)
        if reason:
            if len(tasks) == most:
                errors.prose(f"only the newest {most:,} blocked tasks were searched", style="yellow")
            tasks = [task for task in tasks if task.status_reason == reason]
        tasks = tasks[:limit]
        if as_json:
            print_json([with_present_uris(task, swarm.parts.blobs) for task in tasks])
            return
        rows = [
            (
                shown_id(task.task_id),
                task.assigned_to,
                style_status(task.status_reason.value if task.status_reason else task.status.value),
                str(task.priority),
                ago(task.updated_at),
                f"{cell(task.objective, 60)} | {cell(task.summary, 80)}",
            )
            for task in tasks
        ]
        columns = ["task", "role", "status", "prio", "changed", "objective | summary"]
        filtered = status or role or session or schedule
        none = "no task matches the filters" if filtered else "no tasks yet: `swarm submit` creates one"
        table("tasks", columns, rows, none=none)

    run_async(main)


def show(
    task_id: TaskId,
    events: Annotated[
        int, typer.Option("--events", min=0, help="Number of latest events of the latest run to show.")
    ] = 20,
    level: Level = "info",
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show one task: its whole answer, graph, lease, attempts, events, and the reason why it is stuck."""
    level = one_of(level, "--level", SEVERITY) or level

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            task = await swarm.find(task_id)
            seen = await look(swarm, task)
            if as_json:
                view = {"task": seen.task, "why": seen.why, "runs": list(seen.runs), "events": list(seen.events)}
                print_json(view)
            else:
                draw(seen, events=events, level=level)

    run_async(main)


def watch(
    task_id: Annotated[str | None, typer.Argument(help="Task to follow; default: the newest objective.")] = None,
    level: Level = "info",
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
) -> None:
    """Follow an objective and its events until it ends or is stuck; exit code 1 unless all tasks are done."""
    level = one_of(level, "--level", SEVERITY) or level

    async def main() -> bool:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            if task_id is None:
                newest = await swarm.tasks(limit=1)
                if not newest:
                    raise InvalidInput("there is no task to watch: `swarm submit` creates one")
                chain = newest[0].trace.chain_id
            else:
                chain = (await swarm.find(task_id)).trace.chain_id
            ended = await progress.follow(swarm, chain, runs=RunPrinter(swarm, chain, console, level))
            if console.is_terminal:
                console.print(progress.view(ended))
            else:
                progress.print_tasks(ended)
            for task in ended:
                if task.task_id == chain:
                    print_answer(await read_answer(swarm.parts.blobs, task))
            return all(task.status is TaskStatus.DONE for task in ended)

    if not run_async(main):
        command = command_line("swarm", "show", task_id or "TASK")
        console.print(f"not all tasks are done: see `{command}`", style="yellow", soft_wrap=True)
        raise typer.Exit(1)


def cancel(
    task_id: TaskId,
    tree: Annotated[bool, typer.Option("--tree", help="Cancel all tasks below it as well.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Reason, stored on the task.")] = "by the operator",
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a task; its work stops within two seconds. The tasks below it continue, unless --tree is given."""

    async def act(swarm: Swarm, task: Task) -> list[str]:
        canceled = await swarm.cancel(task, reason, tree=tree)
        below = () if tree else (await swarm.get(task)).children
        if below:
            command = command_line("swarm", "cancel", shown_id(task.task_id), "--tree")
            errors.prose(f"the {len(below)} below it continue: `{command}` cancels them", style="yellow")
        return canceled

    operate(board_settings(root, store, project), task_id, act, as_json, "canceled")


def retry(
    task_id: TaskId,
    redo: Annotated[list[str] | None, typer.Option("--redo", help="Run this uncertain step again; repeatable.")] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", help="Treat this uncertain step as done.")] = None,
    turns: Annotated[int, typer.Option("--turns", min=0, max=100, help="Additional decisions for its model.")] = 0,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Retry the tasks that stopped for this reason, such as dead_letter.")
    ] = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Requeue a failed or paused task, and all below it that stopped for the same reason."""
    wanted = one_of(reason, "--reason", StatusReason)

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            task = await swarm.find(task_id)
            if redo or skip or turns:
                retried = [await swarm.retry(task, redo=redo or (), skip=skip or (), turns=turns)]
            else:
                retried = await swarm.retry_tree(task, StatusReason(wanted) if wanted else None)
            if as_json:
                print_json(retried[0] if len(retried) == 1 else retried)
                return
            for each in retried:
                console.print(f"queued again {each.task_id}", soft_wrap=True)

    run_async(main)
