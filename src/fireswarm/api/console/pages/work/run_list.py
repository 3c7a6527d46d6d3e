"""The list of runs: those that failed on a day, those that worked longest, those that cost most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.api.paging import DEFAULT_LIMIT, decode_cursor, encode_cursor
from fireswarm.client import Swarm
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.swarm.run import RunDocument, RunStatus
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS, task_path
from fireswarm.storage.documents.read import parse_all, parse_readable, parse_run_snapshot, parse_task_snapshot

FAILED, RUNNING = "failed", "running"
STATUSES: Mapping[str, list[str] | str] = {
    FAILED: [RunStatus.ERROR.value, RunStatus.TIMEOUT.value],
    RUNNING: [RunStatus.STARTED.value, RunStatus.PROGRESS.value],
    "completed": RunStatus.COMPLETED.value,
}

SORTS = {"": "last begun", "longest": "longest work, of 500", "dearest": "most expensive, of 500"}
SORTED = 500
"""Number of runs that are compared, the last begun: no index knows how long a run worked, or what it cost."""

KEPT_SECONDS = 30.0
"""How long a list is kept: each run costs a read, and so does its task."""

FILTERS = ("status", "role", "agent", "day", "sort")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with its task as it is now; None if the task was deleted. ``seconds`` it worked, None while it runs."""

    run: RunDocument
    task: Task | None
    seconds: float | None

    @property
    def usd(self) -> float:
        """What its model calls cost; 0 for a figure that is none."""
        usd = self.run.usage.get("usd")
        return float(usd) if isinstance(usd, (int, float)) and math.isfinite(usd) else 0.0


@dataclass(frozen=True, slots=True)
class RunList:
    """Rows of a page, ids of documents that cannot be read, and the cursor of the next page, "" for none."""

    rows: tuple[RunRow, ...]
    unreadable: tuple[str, ...]
    cursor: str


async def show(visit: Visit) -> Shown:
    """Make the page. Raises InvalidInput for an unknown filter."""
    given = {name: visit.query.get(name, "").strip() for name in FILTERS}
    for name, words in (("status", STATUSES), ("sort", SORTS)):
        if given[name] and given[name] not in words:
            raise InvalidInput(f"unknown {name} {given[name]!r}; known: {', '.join(filter(None, words))}")
    cursor = visit.query.get("cursor", "")
    span = _span_of(given["day"])
    found = await visit.console.feed.keep(
        (*given.values(), cursor), KEPT_SECONDS, lambda: _read(visit.swarm, given, span, cursor)
    )
    following = {name: value for name, value in given.items() if value} | {"cursor": found.cursor}
    values = {
        "rows": found.rows,
        "unreadable": found.unreadable,
        "next": urlencode(following) if found.cursor else "",
        "first": not cursor,
        "given": given,
        "statuses": list(STATUSES),
        "sorts": SORTS,
        "roles": sorted(visit.swarm.parts.roles),
    }
    return Shown("runs.html", values)


async def _read(swarm: Swarm, given: Mapping[str, str], span: queries.Span, cursor: str) -> RunList:
    store, sort = swarm.parts.store, given["sort"]
    limit = SORTED if sort else DEFAULT_LIMIT
    after = decode_cursor(cursor, RUNS) if cursor and not sort else None
    chosen = {
        "status": STATUSES.get(given["status"]),
        "role": given["role"] or None,
        "agent_id": given["agent"] or None,
    }
    snapshots = await store.query(queries.page(RUNS, "started_at", limit + 1, after, span, **chosen))
    runs, others = parse_all(snapshots[:limit], parse_run_snapshot)
    rows = [RunRow(run, None, work_seconds(run)) for run in await swarm.parts.run_ends.complete(runs)]
    if sort == "longest":
        rows.sort(key=lambda row: row.seconds or 0.0, reverse=True)
    elif sort == "dearest":
        rows.sort(key=lambda row: row.usd, reverse=True)
    rows = rows[:DEFAULT_LIMIT]
    tasks = await _read_tasks(swarm, [row.run.task_id for row in rows])
    shown = tuple(RunRow(row.run, tasks.get(row.run.task_id), row.seconds) for row in rows)
    more = len(snapshots) > limit and not sort
    return RunList(
        shown, tuple(other.id for other, _ in others), encode_cursor(snapshots[limit - 1], "started_at") if more else ""
    )


async def _read_tasks(swarm: Swarm, ids: list[str]) -> dict[str, Task]:
    paths = [task_path(task_id) for task_id in dict.fromkeys(ids) if is_document_id(task_id)]
    found = [item for item in await swarm.parts.store.get_many(paths) if item.data is not None] if paths else []
    return {task.task_id: task for task in parse_readable(found, parse_task_snapshot)}


def work_seconds(run: RunDocument) -> float | None:
    """Return how long an ended run worked; None for one that has no end."""
    return max(0.0, (run.ended_at - run.started_at).total_seconds()) if run.ended_at is not None else None


def _span_of(day: str) -> queries.Span:
    """Return the bounds of a day (UTC). Raises InvalidInput for what is no day."""
    if not day:
        return None, None
    try:
        start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
        return start, start + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{day!r} is no day: write it as 2026-11-29") from error


def sum_work(runs: list[RunDocument]) -> dict[str, Any] | None:
    """Return how long the ended runs of a task worked together, in seconds, and how many they are; None without one."""
    seconds = [worked for run in runs if (worked := work_seconds(run)) is not None]
    return {"seconds": sum(seconds), "runs": len(seconds)} if seconds else None
