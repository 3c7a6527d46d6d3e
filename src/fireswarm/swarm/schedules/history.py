"""The tasks of a schedule, also of one that was removed or set again: their keys name it, and their time."""

from __future__ import annotations

import contextlib
from datetime import datetime

from fireswarm.contracts.base import as_utc
from fireswarm.contracts.ports import Query, Store
from fireswarm.contracts.swarm.task import Task
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot

BY_HAND = "by hand at "
"""Beginning of the occasion of a task that a person started; that of others is a time."""

FIRST, END = "0", "\uf8ff"
"""Before all times, and after what begins as the text before it."""

READ = 3
"""Tasks that are read for the last one: one in another session may have the key of a schedule, too."""


def make_key(name: str, occasion: str) -> str:
    """Return the ``fresh_key`` of a schedule's task for one occasion."""
    return f"schedule/{name}/{occasion}"


def time_of(task: Task) -> datetime | None:
    """Return the time of a schedule for which a task was submitted; None for one that a person started."""
    with contextlib.suppress(ValueError):
        return as_utc(datetime.fromisoformat(task.fresh_key.rpartition("/")[2]))
    return None


async def find_timed(store: Store, name: str, session: str, until: datetime, limit: int = READ) -> list[Task]:
    """Return the tasks of a schedule's times until *until*, the last first."""
    last = make_key(name, as_utc(until).isoformat())
    return await _read(store, queries.by_key(make_key(name, FIRST), last, limit), session)


async def find_by_hand(store: Store, name: str, session: str, limit: int = READ) -> list[Task]:
    """Return the tasks of a schedule that a person started, the last first."""
    key = make_key(name, BY_HAND)
    return await _read(store, queries.by_key(key, f"{key}{END}", limit), session)


async def _read(store: Store, query: Query, session: str) -> list[Task]:
    found = parse_readable(await store.query(query), parse_task_snapshot)
    return [task for task in found if task.session_hash == session]
