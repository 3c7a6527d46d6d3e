"""Watch an objective: its tasks, their holders and progress, and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import anyio
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fireswarm.cli.shared.options import STYLES, console, style_status, usage_line
from fireswarm.cli.shared.tables import cell, table
from fireswarm.cli.watch.answer import print_answer
from fireswarm.cli.watch.follow import RunPrinter, brief
from fireswarm.cli.watch.results import print_results
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line, count_noun
from fireswarm.contracts.limits import clip, shown_id
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.swarm.records.artifacts import read_answer

REFRESH_PER_SECOND = 8
SHOWN_TASKS = 24
SHOWN_SPEAKING = 4
_WAITS_FOR_OTHERS = (StatusReason.DELEGATING, StatusReason.DEPENDENCIES)
GRID_CHARS = 200
"""Maximum length of a summary in the final table. The full answer is printed below it."""


def view(tasks: Sequence[Task], speaking: Sequence[tuple[str, str, str]] = ()) -> RenderableType:
    """Return the sorted tasks of one objective, and the text that models are writing: task id, role, text."""
    counted = Counter(task.status.value for task in tasks)
    line = Text("  ").join(Text(f"{count} {status}", STYLES.get(status, "")) for status, count in counted.items())
    grid = Table(box=None, padding=(0, 2), show_header=False)
    for task in tasks[:SHOWN_TASKS]:
        word = task.status_reason.value if task.status_reason else task.status.value
        mark = Text("  " * task.trace.step + (task.plan_key or "objective"))
        grid.add_row(
            shown_id(task.task_id),
            mark,
            task.assigned_to,
            style_status(word),
            Text(clip(brief(task.summary), 60), no_wrap=True, overflow="ellipsis"),
        )
    said = [
        Text.assemble((f"{shown_id(task_id)} {role} writes ", "magenta"), (words, "dim"))
        for task_id, role, words in speaking[:SHOWN_SPEAKING]
    ]
    return Group(line, grid, *said)


def print_tasks(tasks: Sequence[Task]) -> None:
    """Print the tasks of an objective as a table."""
    rows = [
        (
            shown_id(task.task_id),
            task.plan_key or "objective",
            task.assigned_to,
            style_status(task.status_reason.value if task.status_reason else task.status.value),
            str(task.epoch),
            cell(brief(task.summary), GRID_CHARS),
        )
        for task in tasks
    ]
    table("tasks", ("task", "step", "role", "status", "runs", "summary"), rows, none="no tasks")


async def follow(swarm: Swarm, root_id: str, *, live: bool = True, runs: RunPrinter | None = None) -> list[Task]:
    """Show an objective until it ends or is stuck. Returns its final tasks. *runs* prints its events."""
    tasks: list[Task] = []
    with Live(console=console, refresh_per_second=REFRESH_PER_SECOND, transient=True) as screen:

        def show() -> None:
            if live:
                screen.update(view(tasks, runs.speaking() if runs is not None else ()))

        async with anyio.create_task_group() as group:
            if runs is not None:
                runs.on_change = show
                group.start_soon(runs.follow)
            async with swarm.follow(root_id) as changes:
                async for changed in changes:
                    tasks = changed
                    show()
            group.cancel_scope.cancel()
        if runs is not None:
            await runs.finish()
    return tasks


async def report(
    swarm: Swarm, root_id: str, tasks: Sequence[Task], seconds: float, *, of_whole_fleet: bool = False
) -> TaskStatus:
    """Print how an objective ended: tasks, runs, handoffs and report. Returns DONE if all tasks are done.

    With *of_whole_fleet*, the agents worked only on this objective, so that all their billed operations belong to it.
    """
    print_tasks(tasks)
    root = next(task for task in tasks if task.task_id == root_id)
    handoffs = sum(task.parent_task_id is not None for task in tasks)
    runs = sum(task.epoch for task in tasks)
    billed = f"; billed: {usage_line(await _usage_of_all(swarm, root))}" if of_whole_fleet else ""
    console.prose(
        f"{count_noun(len(tasks), 'task')}, {count_noun(runs, 'run')}, {count_noun(handoffs, 'handoff')}, "
        f"{seconds:.1f} s{billed}"
    )
    print_answer(await read_answer(swarm.parts.blobs, root), console)
    await print_results(swarm, root, tasks)
    if root.status is not TaskStatus.DONE:
        await _print_what_is_needed(swarm, root, tasks)
    everything_done = all(task.status is TaskStatus.DONE for task in tasks)
    return TaskStatus.DONE if everything_done else TaskStatus.BLOCKED


async def _usage_of_all(swarm: Swarm, root: Task) -> Counter[str]:
    """Return the billed operations of this process, and of all agents since the objective was submitted."""
    usage = Counter(asdict(swarm.parts.store.usage))
    for status in await swarm.parts.heartbeats.latest(since=root.created_at):
        usage.update(status.usage)
    return usage


async def _print_what_is_needed(swarm: Swarm, root: Task, tasks: Sequence[Task]) -> None:
    """Print why tasks stopped that wait for no other task, with the command to continue, and the objective's end."""
    for task in tasks:
        if task.status is not TaskStatus.BLOCKED or task.status_reason in _WAITS_FOR_OTHERS:
            continue
        why = await swarm.explain(task)
        said = "" if task.summary in why else f" {task.summary}"
        console.prose(f"{shown_id(task.task_id)} {task.assigned_to}:{said}")
        console.prose(why, style="yellow")
    word = (root.status_reason.value if root.status_reason else root.status.value).replace("_", " ")
    command = command_line("swarm", "show", shown_id(root.task_id))
    console.prose(f"the objective stopped ({word}); `{command}` shows details", style="yellow")
