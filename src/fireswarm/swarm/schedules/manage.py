"""The schedules of a swarm: set, read, pause, resume, run and remove them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from fireswarm.contracts.ports import SERVER_TIME, Update
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import Submitted, Task, TaskSpec
from fireswarm.contracts.swarm.task_fields import TaskFields, make_spec
from fireswarm.errors import Conflict, InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import SCHEDULES, schedule_path
from fireswarm.storage.documents.read import parse_all, parse_readable
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.schedules import stored
from fireswarm.swarm.schedules.history import BY_HAND, find_by_hand, find_timed
from fireswarm.swarm.schedules.schedule import Schedule, parse_schedule
from fireswarm.swarm.submission.arguments import Natural, ScheduleName, check_arguments
from fireswarm.swarm.submission.submit_task import submit_task

MOST_LOOKED_AT = 500
"""Schedules that `find_idle` reads."""


@check_arguments
@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules of a store. The processes of a schedule's role submit its task at its times.

    Methods that take a name raise NotFound for an unknown one, and InvalidInput for a malformed document.
    """

    parts: SwarmParts

    async def get(self, name: ScheduleName) -> Schedule:
        """Read one schedule."""
        return await stored.load(self.parts.store, name)

    async def set(
        self,
        name: ScheduleName,
        cron: str,
        objective: str | TaskSpec,
        *,
        role: str = DEFAULT_ROLE,
        timezone: str = "UTC",
        overlap: str = "skip",
        paused: bool | None = None,
        context: Mapping[str, Any] | None = None,
        **more: Unpack[TaskFields],
    ) -> Schedule:
        """Create a schedule, or replace it; *more* are further fields of its task, as for ``Swarm.submit``.

        *cron* has minute, hour, day of month, month and day of week in the IANA *timezone*. With the *overlap* ``skip``
        a time is left out while the task of the last one has not ended; with ``allow`` it is not. Without *paused*, a
        paused schedule stays so. Raises InvalidInput, also for a task that cannot run and a name of another session.
        """
        spec = objective
        if not isinstance(spec, TaskSpec):
            fields: dict[str, Any] = {"session_hash": self.parts.settings.session, "context": dict(context or {})}
            spec = make_spec(objective=objective, assigned_to=role, **(fields | more))
        elif more or context is not None or role != DEFAULT_ROLE:
            raise InvalidInput("a TaskSpec has all fields of its task: set role, context and others in it")
        given: dict[str, Any] = {"cron": cron, "timezone": timezone, "overlap": overlap}
        return await stored.put(self.parts, name, spec, given | ({} if paused is None else {"paused": paused}))

    async def pause(self, name: ScheduleName) -> Schedule:
        """Submit nothing until ``resume``."""
        return await stored.set_paused(self.parts, name, paused=True)

    async def resume(self, name: ScheduleName) -> Schedule:
        """Go on with the next time; those of the pause are not made up for."""
        return await stored.set_paused(self.parts, name, paused=False)

    async def remove(self, name: ScheduleName) -> None:
        """Delete a schedule, also a malformed one. Its tasks go on."""
        await stored.delete(self.parts.store, name)

    async def run_now(self, name: ScheduleName) -> Submitted:
        """Submit the task of a schedule at once, also while it is paused; its next time stays as it is."""
        schedule = await self.get(name)
        now = self.parts.clock.now()
        submitted = await submit_task(self.parts, schedule.make_spec(f"{BY_HAND}{now.isoformat()}"))
        noted = {"last_at": now, "last_task_id": submitted.task_id, "note": "", "updated_at": SERVER_TIME}
        with contextlib.suppress(Conflict):  # it was removed meanwhile
            await self.parts.store.commit([Update(schedule_path(name), noted)])
        return submitted

    async def tasks(self, name: ScheduleName, *, limit: Natural = 20) -> Sequence[Task]:
        """Return up to *limit* tasks of a schedule, the newest first."""
        store, session = self.parts.store, (await self.get(name)).session_hash
        found = await find_timed(store, name, session, self.parts.clock.now(), limit)
        found += await find_by_hand(store, name, session, limit)
        return sorted(found, key=lambda task: task.created_at, reverse=True)[:limit]

    async def find_idle(self) -> Sequence[tuple[str, str]]:
        """Return the names of schedules that nobody fires, each with the reason: a fault, or a role without a card."""
        found = await self.parts.store.query(queries.by_id(SCHEDULES, MOST_LOOKED_AT))
        schedules, faulty = parse_all(found, parse_schedule)
        idle = [(snapshot.id, str(fault)) for snapshot, fault in faulty]
        idle += [
            (each.schedule_id, f"there is no role {each.assigned_to}: nobody submits its task")
            for each in schedules
            if each.assigned_to not in self.parts.roles
        ]
        return sorted(idle)

    async def list(self, *, limit: Natural = 500) -> Sequence[Schedule]:
        """Return up to *limit* schedules of all sessions, by name. A malformed document is logged and skipped."""
        return parse_readable(await self.parts.store.query(queries.by_id(SCHEDULES, limit)), parse_schedule)
