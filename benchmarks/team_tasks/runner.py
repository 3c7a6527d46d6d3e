"""Do each objective both ways, as one agent and as the swarm, and put the results side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio

from benchmarks.agent_tasks.chosen_model import Chosen
from benchmarks.agent_tasks.runner import AGENT, Place, Result, Way, count_event, run_task
from benchmarks.team_tasks.child import SESSION
from benchmarks.team_tasks.model_server import recorded_model
from benchmarks.team_tasks.task import TeamTask
from fireswarm import Swarm
from fireswarm.runs.sinks.run_reader import RunReader
from fireswarm.storage.documents import queries


def measure_store(place: Place, result: Result, since: datetime | None) -> None:
    """Add up what the events in the swarm's store say, also of runs that were ended in the middle."""
    anyio.run(partial(_count_events, place.home, result, since))


async def _count_events(root: Path, result: Result, since: datetime | None) -> None:
    async with Swarm.open(store="embedded", session=SESSION, root=root, create=False) as swarm:
        store = swarm.parts.store
        for chain in {task.trace.chain_id for task in await swarm.tasks(limit=1_000)}:
            for run in await store.query(queries.runs_of(chain)):
                for event in await RunReader(store).news(run):
                    if since is None or event["ts"] >= since:
                        count_event(result, event["type"], event.get("payload") or {})


SWARM = Way("swarm", "benchmarks.team_tasks.child", measure_store)
WAYS = {way.name: way for way in (AGENT, SWARM)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured: the ways by name, the runs of each, and the time that a recorded answer takes."""

    tasks: Sequence[TeamTask]
    ways: Sequence[str] = tuple(WAYS)
    runs: int = 1
    delay_seconds: float = 0.0


async def run_both(plan: Plan, chosen: Chosen, folder: Path, on_result: Callable[[Result], None]) -> None:
    """Do each objective each way, one after the other. Results are told as they come."""
    for number in range(1, plan.runs + 1):
        for task in plan.tasks:
            for name in plan.ways:
                on_result(await run_one(task, number, chosen, folder, WAYS[name], plan.delay_seconds))


async def run_one(
    task: TeamTask, number: int, chosen: Chosen, folder: Path, way: Way, delay_seconds: float = 0.0
) -> Result:
    """Do an objective once, with the chosen model or else with a server of its recorded answers."""
    place = folder / f"{task.name}-{way.name}-{number}"
    async with contextlib.AsyncExitStack() as stack:
        if chosen.settings is None:
            chosen = await stack.enter_async_context(recorded_model(task, chosen, delay_seconds))
        return await run_task(task, number, chosen, place, way)
