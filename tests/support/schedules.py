"""Schedules under test: as a person writes them, as processes read them, and the tasks that they submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fireswarm.contracts.ports import Create, Snapshot, Update
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import schedule_path
from fireswarm.swarm.schedules.duty import ScheduleDuty
from fireswarm.swarm.schedules.schedule import parse_schedule
from fireswarm.swarm.worker.loop import Worker
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig

MINUTE = 60.0


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def document(swarm: SwarmRig, name: str = "report") -> dict[str, Any]:
    return dict((await swarm.store.get(schedule_path(name))).data or {})


async def edit(swarm: SwarmRig, name: str = "report", **fields: Any) -> None:
    """Change a document as a person does in the Firebase console."""
    await swarm.store.commit([Update(schedule_path(name), fields)])


async def by_hand(swarm: SwarmRig, name: str, **fields: Any) -> None:
    """Write a document for the scout as a person does."""
    await swarm.store.commit([Create(schedule_path(name), {"assigned_to": "scout", **fields})])


async def every_minute(swarm: SwarmRig, **more: Any) -> None:
    """Set a schedule of each minute, whose task has a skill that does nothing."""
    fields: dict[str, Any] = {"role": "scout", "skill": "noop"} | more
    await swarm.client.schedules.set("report", "* * * * *", "write it", **fields)


async def occasions(swarm: SwarmRig) -> list[str]:
    """The times that have a task, in order, each as often as it has one."""
    return sorted(task.fresh_key.rpartition("/")[2][:16] for task in await swarm.client.tasks())


async def settled(swarm: SwarmRig, worker: Worker, number: int) -> None:
    """Wait until a worker has ended so many tasks; a second of virtual time passes at each look."""

    async def is_settled() -> bool:
        await swarm.clock.advance(1)
        return worker.settled == number

    await until(is_settled, seconds=PATIENCE_SECONDS, what=f"the end of {number} tasks")


async def end_tasks(swarm: SwarmRig) -> None:
    for held in await swarm.claim(wanted=10):
        await swarm.settle(held)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that has read the schedules once."""

    duty: ScheduleDuty
    snapshots: Sequence[Snapshot]

    async def fire_once(self) -> None:
        for snapshot in self.snapshots:
            await self.duty.handle(snapshot, parse_schedule(snapshot))


async def reading(swarm: SwarmRig) -> Process:
    return Process(ScheduleDuty(swarm.core, "scout"), await swarm.store.query(queries.schedules_of("scout")))
