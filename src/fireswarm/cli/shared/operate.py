"""Run an operator's action on one task and print its result."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fireswarm import wiring
from fireswarm.cli.shared.find_task import find_task
from fireswarm.cli.shared.options import console, print_json, run_async
from fireswarm.settings import Settings

TaskId = Annotated[str, typer.Argument(help="Task id or a unique prefix of it.")]


def operate(settings: Settings, task_id: str, act: Any, as_json: bool, done: str) -> None:
    """Run *act* on one task and print its result, or *done* with the task's id."""

    async def main() -> None:
        async with wiring.open_swarm(settings) as swarm:
            task = await find_task(swarm, task_id)
            result = await act(swarm, task.task_id)
            if as_json:
                print_json(result)
            else:
                console.print(f"{done} {task.task_id}", soft_wrap=True)

    run_async(main)
