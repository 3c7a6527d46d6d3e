"""Run the calls of one answer at once."""

from __future__ import annotations

from collections.abc import Awaitable

import anyio

from fireswarm.contracts.llm.chat import ToolOutput


async def run_side_by_side(calls: list[Awaitable[ToolOutput]]) -> list[ToolOutput]:
    """Run calls at once and return their outputs in order. The first exception in that order is raised at the end."""
    if len(calls) == 1:
        return [await calls[0]]
    outcomes: list[ToolOutput | Exception | None] = [None] * len(calls)

    async def run(number: int, call: Awaitable[ToolOutput]) -> None:
        try:
            outcomes[number] = await call
        except Exception as error:  # must leave the task group unwrapped; raised again below
            outcomes[number] = error

    async with anyio.create_task_group() as tasks:
        for number, call in enumerate(calls):
            tasks.start_soon(run, number, call)
    done: list[ToolOutput] = []
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            done.append(outcome)
    return done
