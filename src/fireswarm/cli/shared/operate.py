"""Run an operator's action on one task and print its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from fireswarm.cli.shared.options import console, errors, print_json, run_async
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import Task
from fireswarm.settings import Settings

TaskId = Annotated[str, typer.Argument(help="Task id or a unique prefix of it.")]


def operate(
    settings: Settings, task_id: str, act: Callable[[Swarm, Task], Awaitable[Any]], as_json: bool, done: str
) -> None:
    """Run *act* on one task and print its result, or *done* with the task's id."""

    async def main() -> None:
        async with Swarm.open(settings=settings, create=False) as swarm:
            task = await swarm.find(task_id)
            result = await act(swarm, task)
            if as_json:
                print_json(result)
            elif isinstance(result, Task) and result.task_id != task.task_id:
                console.print(f"{task.task_id} has ended: {result.task_id} goes on with it", soft_wrap=True)
            else:
                console.print(f"{done} {task.task_id}", soft_wrap=True)

    run_async(main)


async def say_if_nobody_runs(swarm: Swarm, role: str) -> None:
    """Print a hint on standard error if no agent of the role is running, judged by recent heartbeats."""
    if not await swarm.parts.heartbeats.lives(role):
        errors.print(f"no {role} agent is running: start all roles with `swarm up`", style="yellow")
