"""A role process's duty: submit the tasks of its role's schedules when they are due.

A task's key is made of the schedule and the time, so all processes of the role submit the same one, also after a crash;
then the schedule moves on, if it is still as it was read.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio.lowlevel

from fireswarm.clocks import Bell
from fireswarm.contracts.limits import truncate
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Snapshot, Update
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import Conflict, FireswarmError, InvalidInput, NewerDocument, StoreError, StoreRejected
from fireswarm.redaction import spell
from fireswarm.storage.documents import queries
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.schedules.history import find_by_hand, find_timed, time_of
from fireswarm.swarm.schedules.schedule import Overlap, Schedule, parse_schedule
from fireswarm.swarm.schedules.times import find_due, next_time
from fireswarm.swarm.submission.submit_task import submit_task

MAX_NOTE_CHARS = 500

OWN_FIELDS = frozenset({"note", "next_at", "timed_by", "updated_at"})
"""What a process writes into a schedule, beside the last task."""

LOOK_SECONDS = 60.0
"""Longest wait for the next time: timers stand still while a machine is suspended, the clock does not. A look costs
nothing."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ScheduleDuty:
    """Fires the schedules of one role. While nothing changes and nothing is due, nothing is read or written."""

    parts: SwarmParts
    role: str
    _changed: Bell = field(default_factory=Bell)
    _known: dict[str, tuple[Snapshot, Schedule]] = field(default_factory=dict[str, tuple[Snapshot, Schedule]])
    _seen: dict[str, tuple[Snapshot, Schedule | None]] = field(
        default_factory=dict[str, tuple[Snapshot, "Schedule | None"]]
    )
    _faulty: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    async def watch(self) -> None:
        """Follow the schedules of the role, until the listener ends."""
        async with self.parts.store.listen(queries.schedules_of(self.role)) as batches:
            async for snapshots in batches:
                await self.read_all(snapshots)
                self._changed.ring()

    async def read_all(self, snapshots: Sequence[Snapshot]) -> None:
        """Learn the schedules of the role as they are now; those that have not changed are not parsed again."""
        read: dict[str, tuple[Snapshot, Schedule | None]] = {}
        for snapshot in snapshots:
            before = self._seen.get(snapshot.path)
            if before is not None and before[0].update_time == snapshot.update_time:
                read[snapshot.path] = before
                continue
            read[snapshot.path] = snapshot, await self._read(snapshot)
            await anyio.lowlevel.checkpoint()  # a large one takes half a second
        self._seen = read
        self._faulty = {path: content for path, content in self._faulty.items() if path in read}
        self._known = {path: (snapshot, found) for path, (snapshot, found) in read.items() if found is not None}

    async def fire(self) -> None:
        """Submit the task of each schedule that is due, until canceled."""
        while True:
            await self.fire_due()
            now = self.parts.clock.now()
            ahead = [(each.next_at - now).total_seconds() for _, each in self._known.values() if each.next_at]
            pause = max(0.0, min(LOOK_SECONDS, *ahead)) if ahead else None
            await self._changed.heard(self.parts.clock, pause)

    async def fire_due(self) -> None:
        """Move on each known schedule for which it is time."""
        for snapshot, schedule in list(self._known.values()):
            await self.handle(snapshot, schedule)

    async def _read(self, snapshot: Snapshot) -> Schedule | None:
        """Return a schedule; a malformed one is set aside with the reason in its note."""
        try:
            return parse_schedule(snapshot)
        except NewerDocument as newer:
            self.parts.board.aside.leave(snapshot, newer)
        except InvalidInput as fault:
            await self._set_aside(snapshot, str(fault))
        except Exception as error:  # a person may write anything into a document; the other schedules go on
            _log.exception("%s could not be read", _line(snapshot.path))
            await self._set_aside(snapshot, f"{snapshot.path} cannot be read: {error}")
        return None

    async def _set_aside(self, snapshot: Snapshot, fault: str) -> None:
        """Note the fault, once for what a person wrote: another version of this program may judge it differently."""
        content = {name: value for name, value in (snapshot.data or {}).items() if name not in OWN_FIELDS}
        if self._faulty.get(snapshot.path) == content:
            return
        note = self._note(f"set aside: {fault}")
        if (snapshot.data or {}).get("note") != note:
            _log.warning("%s", _line(note))
            await self._write(snapshot, {"note": note, "next_at": DELETE_FIELD})
        self._faulty[snapshot.path] = content  # not before: the store may have been away

    def _note(self, text: str) -> str:
        """Return a note as it is stored: without secrets, of which a cut one could not be recognized, then cut."""
        return truncate(str(self.parts.store.as_stored({"note": text})["note"]), MAX_NOTE_CHARS)

    async def handle(self, snapshot: Snapshot, schedule: Schedule) -> None:
        """Move one schedule on, if it is time. Raises StoreError; it is tried again."""
        try:
            changed = await self._advance(schedule)
        except StoreError as error:
            if not isinstance(error, StoreRejected):
                raise
            changed = self._move(schedule, f"no task: {error}")
        except FireswarmError as error:
            changed = self._move(schedule, f"no task: {error}")
        except Exception as error:  # as in _read
            _log.exception("%s could not be fired", _line(snapshot.path))
            changed = self._move(schedule, f"no task: {error or type(error).__name__}")
        if changed is None:
            return
        await self._write(snapshot, changed)
        held = self._known.get(snapshot.path)
        if held is not None and held[0] is snapshot:  # the listener may have told the next state already
            del self._known[snapshot.path]

    async def _advance(self, schedule: Schedule) -> dict[str, Any] | None:
        """Return what changes in a schedule now; None for nothing. Submits its task if it is due."""
        now = self.parts.clock.now()
        if schedule.paused:
            return None if schedule.next_at is None else {"next_at": DELETE_FIELD}
        if schedule.next_at is None or schedule.timed_by not in ("", schedule.timing):
            return self._next(schedule, now) | {"note": "", **schedule.defaulted}
        if not schedule.timed_by:  # a person wrote the next time with it
            return {"timed_by": schedule.timing, "note": "", **schedule.defaulted}
        return await self._submit(schedule, schedule.next_at, now) if schedule.next_at <= now else None

    async def _submit(self, schedule: Schedule, next_at: datetime, now: datetime) -> dict[str, Any]:
        """Submit the task of the latest time that is due, and return what changes in the schedule."""
        due = find_due(schedule.cron, schedule.timezone, next_at, now)
        last = await find_timed(self.parts.store, schedule.schedule_id, schedule.session_hash, now)
        at = time_of(last[0]) if last else None
        if at is not None and at >= next_at:  # a process that ended before it could note it has submitted this one
            return self._next(schedule, at) | _done_at(at, last[0])
        if schedule.overlap is Overlap.SKIP and (running := await self._find_running(schedule, last)) is not None:
            state = (running.status_reason or running.status).value
            return self._move(
                schedule,
                f"no task at {due.latest:%Y-%m-%d %H:%M} UTC: that of the last time, "
                f"{running.task_id}, has not ended ({state})",
            )
        submitted = await submit_task(self.parts, schedule.spec_at(due.latest))
        _log.info("schedule %s: submitted task %s", schedule.schedule_id, submitted.task_id)
        return self._next(schedule, now) | _done_at(due.latest, submitted.task, due.describe())

    async def _find_running(self, schedule: Schedule, last: Sequence[Task]) -> Task | None:
        """Return the task of the last time, or else one of the last by hand, that has not ended.

        One that was given up is in nobody's way.
        """
        by_hand = await find_by_hand(self.parts.store, schedule.schedule_id, schedule.session_hash)
        tasks = (*last[:1], *by_hand)
        return next((task for task in tasks if not (task.status.terminal or task.given_up)), None)

    def _move(self, schedule: Schedule, note: str) -> dict[str, Any]:
        """Return the change of a schedule whose due time has no task."""
        stored = self._note(note)
        _log.warning("schedule %s: %s", schedule.schedule_id, _line(stored))
        return self._next(schedule, self.parts.clock.now()) | {"note": stored}

    def _next(self, schedule: Schedule, after: datetime) -> dict[str, Any]:
        next_at = next_time(schedule.cron, schedule.timezone, after)
        return {"next_at": next_at, "timed_by": schedule.timing}

    async def _write(self, snapshot: Snapshot, changed: dict[str, Any]) -> None:
        """Change a schedule, unless it has changed since it was read: then the listener tells what it is now."""
        with contextlib.suppress(Conflict):
            try:
                update = Update(snapshot.path, changed | {"updated_at": SERVER_TIME}, snapshot.update_time)
                await self.parts.store.commit([update])
            except StoreRejected as rejected:
                _log.warning("%s cannot be changed: %s", _line(snapshot.path), rejected)


def _line(text: str) -> str:
    """Return a text of a stranger for the log: on one line, with what no screen shows spelled out."""
    return " ".join(spell(text).split())


def _done_at(at: datetime, task: Task, note: str = "") -> dict[str, Any]:
    return {"last_at": at, "last_task_id": task.task_id, "note": note}
