"""Stored schedules: read, set, change by compare-and-set, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Create, Snapshot, Store, Update
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import Conflict, InvalidInput, NewerDocument, NotFound, StoreUnavailable
from fireswarm.storage.documents.build import new_task, plain
from fireswarm.storage.documents.change import ATTEMPTS, delete_as_read
from fireswarm.storage.documents.paths import schedule_path
from fireswarm.storage.documents.read import HAND_WRITTEN_SESSION, shows
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.schedules.schedule import Schedule, parse_schedule, task_map
from fireswarm.swarm.schedules.times import next_time
from fireswarm.swarm.submission.submit_task import check_task

Accept = Callable[[Schedule | None], None]
"""Raises an error if a schedule may not be changed; it gets None if there is none, or a malformed one."""


def accept_any(schedule: Schedule | None) -> None:
    """Accept any change."""


async def load(store: Store, name: str) -> Schedule:
    """Read a schedule. Raises NotFound, InvalidInput and NewerDocument."""
    return parse_schedule(await _get(store, name))


async def put(
    parts: SwarmParts, name: str, spec: TaskSpec, given: Mapping[str, Any], accept: Accept = accept_any
) -> Schedule:
    """Create a schedule of a task, or replace it; *given* are ``cron`` and other fields of the schedule.

    Raises InvalidInput for faulty fields, a task that could not run and a name of another session, NewerDocument, and
    StoreUnavailable after repeated conflicts.
    """
    check_task(parts, spec)
    new_task(spec, parts.clock.now())  # a context that is too large would have no task at any time
    for _ in range(ATTEMPTS):
        snapshot = await parts.store.get(schedule_path(name))
        earlier = _parse_readable(snapshot)
        _check_session(snapshot, spec.session_hash)
        accept(earlier)
        schedule = _build(name, spec, given, earlier, parts.clock.now())
        if await _commit(parts.store, _replace(snapshot, schedule)):
            return await load(parts.store, name)
    raise StoreUnavailable(f"schedule {name} keeps changing: nothing was written, try again")


async def set_paused(parts: SwarmParts, name: str, *, paused: bool) -> Schedule:
    """Pause or resume a schedule; its next time is that after now. Raises as ``load`` and ``put`` do."""
    for _ in range(ATTEMPTS):
        snapshot = await _get(parts.store, name)
        schedule = parse_schedule(snapshot)
        if schedule.paused == paused:
            return schedule
        timing: dict[str, Any] = {"next_at": DELETE_FIELD}
        if not paused:
            next_at = next_time(schedule.cron, schedule.timezone, parts.clock.now())
            timing = {"next_at": next_at, "timed_by": schedule.timing}
        changed = {"paused": paused, "updated_at": SERVER_TIME, **timing}
        if await _commit(parts.store, Update(snapshot.path, changed, snapshot.update_time)):
            return await load(parts.store, name)
    raise StoreUnavailable(f"schedule {name} keeps changing: nothing was written, try again")


async def delete(store: Store, name: str, accept: Accept = accept_any) -> None:
    """Delete a schedule, also a malformed one. Raises NotFound, and StoreUnavailable after repeated conflicts."""

    async def read() -> Snapshot:
        snapshot = await _get(store, name)
        accept(_parse_readable(snapshot))
        return snapshot

    await delete_as_read(store, read)


async def _get(store: Store, name: str) -> Snapshot:
    snapshot = await store.get(schedule_path(name))
    if snapshot.data is None:
        raise NotFound(f"there is no schedule {name}: `swarm schedule list` lists them")
    return snapshot


def _parse_readable(snapshot: Snapshot) -> Schedule | None:
    """Return a schedule, None for none and for a malformed one. Raises NewerDocument: it is left alone."""
    try:
        return None if snapshot.data is None else parse_schedule(snapshot)
    except NewerDocument:
        raise
    except InvalidInput:
        return None


def _check_session(snapshot: Snapshot, session: str) -> None:
    if snapshot.data is None:
        return
    owner = snapshot.data.get("session_hash") or HAND_WRITTEN_SESSION
    if owner != session:
        raise InvalidInput(f"session {owner} has a schedule {snapshot.id}: choose another name, or remove it first")


def _build(name: str, spec: TaskSpec, given: Mapping[str, Any], earlier: Schedule | None, now: datetime) -> Schedule:
    """Return the schedule. It keeps its last task, and its next time unless its timing changes."""
    kept: dict[str, Any] = {}
    if earlier is not None:
        kept = {"paused": earlier.paused, "last_at": earlier.last_at, "last_task_id": earlier.last_task_id}
    fields: dict[str, Any] = {
        **kept,
        **given,
        "schedule_id": name,
        "session_hash": spec.session_hash,
        "assigned_to": spec.assigned_to,
        "created_by": spec.created_by,
        "task": task_map(spec),
        "created_at": now,
        "updated_at": now,
    }
    try:
        schedule = Schedule.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(f"schedule {name}: {explain_validation(error)}") from error
    if schedule.paused:
        return schedule
    next_at = next_time(schedule.cron, schedule.timezone, now)
    if earlier is not None and earlier.next_at is not None and earlier.timed_by == schedule.timing:
        next_at = min(next_at, earlier.next_at)  # one that is due stays so
    return schedule.model_copy(update={"next_at": next_at, "timed_by": schedule.timing})


def _replace(snapshot: Snapshot, schedule: Schedule) -> Create | Update:
    """Return the write of a whole schedule; fields that it does not have are removed."""
    fields = plain(schedule) | {"created_at": SERVER_TIME, "updated_at": SERVER_TIME}
    if snapshot.data is None:
        return Create(snapshot.path, fields)
    if isinstance(snapshot.data.get("created_at"), datetime):
        del fields["created_at"]
    gone = {name: DELETE_FIELD for name in Schedule.model_fields if name not in fields and name != "created_at"}
    return Update(snapshot.path, fields | gone, snapshot.update_time)


async def _commit(store: Store, write: Create | Update) -> bool:
    """Return True if the write was applied, False after a conflict."""
    try:
        await store.commit([write])
    except Conflict as conflict:
        return conflict.ambiguous and shows((await store.get(write.path)).data, write.data)
    return True
