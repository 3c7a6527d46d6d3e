"""Pages of tasks by status, reason, role, time of the last change, and words of the objective."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from fireswarm.api.paging import PageSlice, decode_cursor, encode_cursor
from fireswarm.contracts.ports import Snapshot, Store
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.redaction import Redactor
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot

SEARCHED, READ_AT_ONCE = 500, 100
"""Number of tasks among which one request looks for words, and how many of them are read at once.

No index knows the words of an objective, so each task that is looked at costs a read.
"""

ORDER = "updated_at"

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.IGNORECASE)


def _parse_time(text: Any) -> datetime:
    """Return a time of RFC 3339 in UTC. Raises ValueError."""
    if not _RFC_3339.fullmatch(str(text)):
        raise ValueError("must be a time with its offset, such as 2026-11-22T06:00:00Z; a + in it is sent as %2B")
    try:
        return datetime.fromisoformat(str(text).upper()).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must be between the years 1 and 9999") from error


Moment = Annotated[datetime, BeforeValidator(_parse_time), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in an address."""


@dataclass(frozen=True, slots=True)
class TaskFilters:
    """What a list of tasks is reduced to; None and "" are no filter.

    ``since`` is the first time of the last change, ``until`` the first after.
    """

    status: TaskStatus | None = None
    reason: StatusReason | None = None
    role: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    session: str | None = None


async def read_task_page(
    store: Store, redactor: Redactor, chosen: TaskFilters, limit: int, cursor: str | None
) -> PageSlice[Task]:
    """Read one page of tasks, most recently changed first.

    With a text, tasks whose objective has all its words are on the page; a page is shorter than *limit*, or empty, if
    there are not so many among the next 500 tasks. Raises InvalidInput for a cursor of another list.
    """
    after = None if cursor is None else decode_cursor(cursor, TASKS)
    words = chosen.text.casefold().split()
    most = SEARCHED if words else limit
    items: list[Task] = []
    unreadable: list[str] = []
    last: Snapshot | None = None
    looked = 0
    while True:
        wanted = min(READ_AT_ONCE if words else limit, most - looked)
        snapshots = await store.query(_query(chosen, wanted + 1, after))
        for snapshot in snapshots[:wanted]:
            tasks, others = parse_all([snapshot], parse_task_snapshot)
            items += [task for task in tasks if _has_words(redactor.clean(task.objective), words)]
            unreadable += [other.id for other, _ in others]
            looked, last = looked + 1, snapshot
            if len(items) == limit or looked == most:
                more = snapshot is not snapshots[-1]
                return PageSlice(tuple(items), encode_cursor(snapshot, ORDER) if more else None, tuple(unreadable))
        if len(snapshots) <= wanted or last is None:
            return PageSlice(tuple(items), None, tuple(unreadable))
        after = (last.data or {})[ORDER], last.path


def _query(chosen: TaskFilters, limit: int, after: tuple[Any, str] | None) -> queries.Query:
    filters = {"status": chosen.status, "status_reason": chosen.reason, "assigned_to": chosen.role}
    return queries.page(
        TASKS, ORDER, limit, after, (chosen.since, chosen.until), **filters, session_hash=chosen.session
    )


def _has_words(objective: str, words: list[str]) -> bool:
    """Return True if all *words* occur. The *objective* is redacted: a search finds no secret by its beginning."""
    text = objective.casefold()
    return all(word in text for word in words)
