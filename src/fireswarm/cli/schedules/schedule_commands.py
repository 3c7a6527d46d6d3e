"""``swarm schedule``: list, set, pause, resume, run and remove schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.operate import say_if_nobody_runs
from fireswarm.cli.shared.options import (
    AsJson,
    Project,
    Root,
    Session,
    StoreUri,
    board_settings,
    console,
    pairs,
    print_json,
    run_async,
    settings_for,
    style_status,
)
from fireswarm.cli.shared.submit_options import (
    BestEffort,
    CapabilityUses,
    ConstraintPairs,
    ContextPairs,
    EffortNamed,
    Expected,
    FallbackNamed,
    ModelNamed,
    ReviewPlan,
    parse_constraints,
    parse_uses,
    places,
    with_best_effort,
)
from fireswarm.cli.shared.tables import cell, table
from fireswarm.client import Swarm
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.swarm.schedules.schedule import Overlap

app = typer.Typer(help="Submit an objective again and again, such as every weekday at 06:00.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the schedule.")]


@app.command("set")
def set_schedule(
    name: Name,
    cron: Annotated[str, typer.Argument(help="Minute, hour, day of month, month, day of week, such as '0 6 * * 1-5'.")],
    objective: Annotated[str, typer.Argument(help="Objective in natural language.")],
    role: Annotated[str, typer.Option("--role", help="Role that executes the tasks.")] = "architect",
    timezone: Annotated[str, typer.Option("--timezone", help="IANA time zone, such as Europe/Berlin.")] = "UTC",
    overlap: Annotated[
        Overlap, typer.Option("--overlap", help="A time at which the last task has not ended: skip it, or allow both.")
    ] = Overlap.SKIP,
    path: Annotated[
        Path | None, typer.Option("--path", help="Folder or file the tasks are about (context.path).")
    ] = None,
    context: ContextPairs = None,
    skill: Annotated[str | None, typer.Option("--skill", help="Skill to use; default: the swarm chooses one.")] = None,
    model: ModelNamed = None,
    effort: EffortNamed = None,
    fallback: FallbackNamed = None,
    capability: CapabilityUses = None,
    priority: Annotated[
        int, typer.Option("--priority", min=1, max=10, help="Priority from 1 to 10; 10 is most urgent.")
    ] = 5,
    constraint: ConstraintPairs = None,
    expect: Expected = "",
    best_effort: BestEffort = False,
    review_plan: ReviewPlan = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Create a schedule, or replace it. A paused one stays paused."""
    settings = settings_for(root, store, project, session)
    spec = make_spec(
        objective=objective,
        assigned_to=role,
        session_hash=settings.session,
        skill=skill,
        model=model,
        effort=effort,
        fallback=fallback,
        capabilities=parse_uses(capability),
        context=pairs(context, "--context") | places(path=path) | with_best_effort(best_effort),
        priority=priority,
        constraints=parse_constraints(constraint),
        expected_outcome=expect,
        review_plan=review_plan,
    )

    async def main() -> None:
        async with Swarm.open(settings=settings) as swarm:
            made = await swarm.schedules.set(name, cron, spec, timezone=timezone, overlap=overlap)
            if as_json:
                print_json(made)
                return
            console.print(f"{name}: {made.words} ({made.timezone}), next: {made.next_words}", soft_wrap=True)
            await say_if_nobody_runs(swarm, role)

    run_async(main)


@app.command("list")
def list_schedules(
    root: Root = Path(), store: StoreUri = None, project: Project = None, as_json: AsJson = False
) -> None:
    """List schedules: when each submits its task next, and what became of the last one."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            schedules = await swarm.schedules.list()
            idle = [] if as_json else await swarm.schedules.find_idle()
        if as_json:
            print_json(schedules)
            return
        rows = [
            (
                each.schedule_id,
                each.assigned_to,
                f"{each.cron} {each.timezone}",
                style_status("paused") if each.paused else each.next_words,
                shown_id(each.last_task_id) if each.last_task_id else "",
                cell(f"{each.objective} | {each.note}" if each.note else each.objective, 140),
            )
            for each in schedules
        ]
        columns = ["name", "role", "when", "next", "last task", "objective | note"]
        table("schedules", columns, rows, none="no schedules yet: `swarm schedule set` creates one")
        for name, reason in idle:
            console.print(f"{name} is not fired: {reason}", style="yellow", markup=False, soft_wrap=True)

    run_async(main)


@app.command()
def pause(
    name: Name, root: Root = Path(), store: StoreUri = None, project: Project = None, as_json: AsJson = False
) -> None:
    """Submit nothing until the schedule is resumed."""

    async def act(swarm: Swarm) -> object:
        return await swarm.schedules.pause(name)

    _operate(act, f"paused {name}", root, store, project, as_json)


@app.command()
def resume(
    name: Name, root: Root = Path(), store: StoreUri = None, project: Project = None, as_json: AsJson = False
) -> None:
    """Go on with the next time; those of the pause are not made up for."""

    async def act(swarm: Swarm) -> object:
        return await swarm.schedules.resume(name)

    _operate(act, f"resumed {name}", root, store, project, as_json)


@app.command()
def run(
    name: Name, root: Root = Path(), store: StoreUri = None, project: Project = None, as_json: AsJson = False
) -> None:
    """Submit the task of a schedule now, also while it is paused; its next time stays as it is."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            submitted = await swarm.schedules.run_now(name)
            if as_json:
                print_json(submitted.task)
                return
            console.print(f"submitted {submitted.task_id}", soft_wrap=True)
            await say_if_nobody_runs(swarm, submitted.task.assigned_to)

    run_async(main)


@app.command()
def remove(name: Name, root: Root = Path(), store: StoreUri = None, project: Project = None) -> None:
    """Delete a schedule. Its tasks go on."""

    async def act(swarm: Swarm) -> object:
        return await swarm.schedules.remove(name)

    _operate(act, f"removed {name}", root, store, project, as_json=False)


def _operate(
    act: Callable[[Swarm], Awaitable[object]],
    done: str,
    root: Path,
    store: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Run *act* and print its result as JSON, or *done*."""

    async def main() -> None:
        async with Swarm.open(settings=board_settings(root, store, project), create=False) as swarm:
            result = await act(swarm)
        if as_json:
            print_json(result)
        else:
            console.print(done, soft_wrap=True)

    run_async(main)
