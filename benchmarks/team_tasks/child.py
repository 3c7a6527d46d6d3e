"""One run of the swarm, in a process that the runner starts: its order comes by standard input, its end is a file."""

from __future__ import annotations

from pathlib import Path

from benchmarks.agent_tasks.child import Ended, Order, Stopwatch, main, reply_to
from fireswarm import Swarm
from fireswarm.cli.watch.artifacts import copy_one
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.swarm.task import Submitted, Task, TaskStatus
from fireswarm.runs.make_mind import redactor_for
from fireswarm.settings import Settings
from fireswarm.settings.run_folders import kept_runs
from fireswarm.swarm.records.artifacts import read_answer

SESSION = "bench"
DELIVERED = "delivered"
"""Name of the run below which the files of the objective are put, as an agent's files are below its run."""


def swarm_settings(order: Order) -> Settings:
    """Return the settings of the swarm: those of the agent, with a budget for the whole instead of each task."""
    settings = Settings.model_validate({**order.settings, "root": order.home, "session": SESSION})
    limits = {"session_usd": settings.budget.task_usd, "session_tokens": settings.budget.task_tokens}
    budget = settings.budget.model_copy(update={**limits, "task_usd": None, "task_tokens": None})
    return settings.model_copy(update={"budget": budget})


async def carry_out_order(order: Order) -> Ended:
    """Give the objective to a swarm of the five roles in this process, and wait for its end as a person does."""
    settings, watch = swarm_settings(order), Stopwatch()
    async with Swarm.local(store="embedded", root=order.home, settings=settings) as swarm:
        watch.start()
        task = await _settle(swarm, await swarm.submit(order.objective, context={"path": order.project}), order)
        if order.then and task.status is TaskStatus.DONE:
            watch.start()
            task = await _settle(swarm, await swarm.say(task, order.then), order)
        ended = watch.end(*await _describe(swarm, task))
        for artifact in task.result.artifacts if task.result is not None else ():
            if artifact.uri is not None:
                await copy_one(swarm, artifact, kept_runs(Path(order.home)) / DELIVERED / OUTPUT_FOLDER)
    return ended


async def _settle(swarm: Swarm, task: Submitted | Task, order: Order) -> Task:
    """Wait until the task ends, with a person who answers its questions and approves what it asks for."""
    current = await swarm.wait(task)
    while asked := [each for each in await swarm.objective(current) if each.questions and not each.status.terminal]:
        for each in asked:
            if any(item.approval is not None for item in each.questions):
                await swarm.approve(each)
            else:
                told = {item.key: reply_to(item.description, order.replies) for item in each.questions}
                await swarm.answer(each, told)
        current = await swarm.wait(current)
    return current


async def _describe(swarm: Swarm, task: Task) -> tuple[str, str, str]:
    """Return status, reason and answer of a task as an agent's run has them."""
    clean = redactor_for(swarm.parts.settings).text
    if task.status is not TaskStatus.DONE:
        return task.status.value, clean(await swarm.explain(task)), ""
    return "finished", "", clean(await read_answer(swarm.parts.blobs, task))


if __name__ == "__main__":
    main(carry_out_order)
