"""Run the store and five roles on one objective."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence

import anyio
import typer

from fireswarm.cli.demo.story import Story
from fireswarm.cli.shared.fleet import console_beside, fleet_of, until_signal
from fireswarm.cli.shared.options import console, settings_for
from fireswarm.cli.watch.follow import RunPrinter
from fireswarm.cli.watch.progress import follow, report
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskSpec, TaskStatus
from fireswarm.settings import Settings

HOUSE = ("scout", "architect", "executor", "predictor", "memory")


async def demonstrate(
    settings: Settings,
    project: str | None,
    spec: TaskSpec,
    *,
    told: bool = False,
    answer: Callable[[Swarm, Task], Awaitable[None]] | None = None,
    then: Callable[[Swarm, str], Awaitable[None]] | None = None,
) -> TaskStatus:
    """Run the store, the console and five roles on one objective, then stop. *told* prints the events of its runs.

    On a terminal, a person may keep the console open at the end.

    *answer* answers the questions of a task. *then* is called with the swarm and the task's id at the end.
    """
    from fireswarm.swarm.opening.embedded_store import serving

    started = time.monotonic()
    async with serving(settings) as uri, fleet_of(settings, uri, dict.fromkeys(HOUSE, 1)).running() as fleet:
        console.print(f"store {uri}, five roles as processes, logs in {fleet.logs}", soft_wrap=True)
        own = settings_for(settings.root, uri, project, settings.session)
        async with Swarm.open(settings=own) as swarm, console_beside(own, uri, 0, anyio.Event()) as link:
            console.print(f"console, a link for one browser: {link}", soft_wrap=True, markup=False)
            task_id = (await swarm.submit(spec)).task_id
            runs = RunPrinter(swarm, task_id, console, printer=Story(console)) if told else None

            async def watch() -> None:
                while asking := _asking(await follow(swarm, task_id, runs=runs)):
                    if answer is None:
                        return
                    for task in asking:
                        await answer(swarm, task)

            await until_signal(watch)
            await fleet.stop()
            console.print()
            tasks = await swarm.objective(task_id)
            status = await report(swarm, task_id, tasks, time.monotonic() - started, of_whole_fleet=True)
            if then is not None:
                await then(swarm, task_id)
            if sys.stdin.isatty() and console.is_terminal and await anyio.to_thread.run_sync(_keeps_console):
                console.print(f"open {link}", soft_wrap=True, markup=False)
                again = link.partition("enter?")[0]
                console.print(f"or, if that link was used, {again} in the same browser; Ctrl-C ends it", soft_wrap=True)
                await until_signal(anyio.sleep_forever)
            return status


def _keeps_console() -> bool:
    try:
        return typer.confirm("Keep the console open?", default=False)
    except typer.Abort:
        return False


def _asking(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.status_reason is StatusReason.INPUT_REQUIRED]
