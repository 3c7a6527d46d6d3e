"""Run the store and five roles on one objective."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from fireswarm.cli.demo.story import Story
from fireswarm.cli.shared.fleet import fleet_of, until_signal
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
    """Run the store and five roles on one objective, then stop. *told* prints the events of its runs.

    *answer* answers the questions of a task. *then* is called with the swarm and the task's id at the end.
    """
    from fireswarm.swarm.opening.open_parts import serving

    started = time.monotonic()
    async with serving(settings) as uri, fleet_of(settings, uri, dict.fromkeys(HOUSE, 1)).running() as fleet:
        console.print(f"store {uri}, five roles as processes, logs in {fleet.logs}", soft_wrap=True)
        async with Swarm.open(settings=settings_for(settings.root, uri, project, settings.session)) as swarm:
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
            return status


def _asking(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.status_reason is StatusReason.INPUT_REQUIRED]
