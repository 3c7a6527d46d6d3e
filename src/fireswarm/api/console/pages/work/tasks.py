"""The list of tasks with filters, and the form of a new objective."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.api.paging import DEFAULT_LIMIT, read_any_page
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import DEFAULT_PRIORITY, StatusReason, TaskStatus
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot

MAX_DIGITS = 10

SORTED, SORTED_SECONDS = 500, 60.0
"""Number of tasks among which the slowest are found, and how long they are kept: each costs a read."""

FILTERS = ("status", "reason", "role", "session")


async def show(visit: Visit) -> Shown:
    """Make the list: fifty tasks, most recently changed first."""
    given = {name: visit.query.get(name, "").strip() for name in FILTERS}
    filters = {
        "status": _one_of(TaskStatus, given["status"]),
        "status_reason": _one_of(StatusReason, given["reason"]),
        "assigned_to": given["role"] or None,
        "session_hash": given["session"] or None,
    }
    cursor = visit.query.get("cursor") or None
    if visit.query.get("sort") == "slowest":
        return Shown("tasks.html", {**await _find_slowest(visit, filters), **_words(visit, given), "is_slowest": True})
    page = await read_any_page(
        visit.swarm, TASKS, "updated_at", parse_task_snapshot, limit=DEFAULT_LIMIT, cursor=cursor, **filters
    )
    following = {**{name: value for name, value in given.items() if value}, "cursor": page.next_cursor}
    values = {
        "tasks": page.items,
        "unreadable": page.unreadable,
        "next": urlencode(following) if page.next_cursor else "",
        "first": cursor is None,
    }
    return Shown("tasks.html", {**values, **_words(visit, given), "is_slowest": False})


def _words(visit: Visit, given: Mapping[str, str]) -> dict[str, Any]:
    """Return what the filters offer, and what is chosen."""
    return {
        "given": given,
        "statuses": [status.value for status in TaskStatus],
        "reasons": [reason.value for reason in StatusReason],
        "roles": sorted(visit.swarm.parts.roles),
    }


async def _find_slowest(visit: Visit, filters: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the tasks that took longest, of those that changed last: no field of a document says how long."""
    query = queries.newest(TASKS, "updated_at", SORTED, **filters)
    name = ("slowest", *filters.values())
    store = visit.swarm.parts.store
    found = await visit.console.feed.remember(name, SORTED_SECONDS, lambda: store.query(query))
    tasks, others = parse_all(found, parse_task_snapshot)
    ended = [task for task in tasks if task.ended_at is not None]
    ended.sort(key=lambda task: (task.ended_at or task.created_at) - task.created_at, reverse=True)
    unreadable = tuple(snapshot.id for snapshot, _ in others)
    return {"tasks": ended[:DEFAULT_LIMIT], "unreadable": unreadable, "next": "", "first": True}


async def show_form(visit: Visit) -> Shown:
    """Make the form of a new objective. Raises InvalidInput for a browser that may only look."""
    if not visit.visitor.acts:
        raise InvalidInput("this link may only look: ask for a link of an operator")
    roles = sorted(visit.swarm.parts.roles.values(), key=lambda card: card.name)
    return Shown("new.html", {"roles": roles, "default": DEFAULT_ROLE})


async def submit(visit: Visit) -> Goto:
    """Submit an objective, and go to its task."""
    form = visit.form
    fields = {
        "objective": form.get("objective", "").replace("\r\n", "\n").strip(),
        "assigned_to": form.get("role") or DEFAULT_ROLE,
        "session_hash": visit.swarm.session,
        "created_by": "console",
        "priority": _whole_number(form.get("priority") or str(DEFAULT_PRIORITY), "priority"),
        "expected_outcome": form.get("expected_outcome", "").strip(),
        "review_plan": form.get("review_plan") == "yes",
        "context": _place(form.get("path", "").strip()),
    }
    if not fields["objective"]:
        raise InvalidInput("say what is to be done")
    submitted = await visit.swarm.submit(make_spec(**fields))
    return Goto(f"/tasks/{submitted.task_id}", "submitted" if submitted.created else "known")


def _place(path: str) -> dict[str, str]:
    """Return a folder as context. Raises InvalidInput for one that this machine does not have."""
    if path and not Path(path).expanduser().exists():
        raise InvalidInput(f"the folder {path} does not exist on the machine of the console")
    return {"path": str(Path(path).expanduser().resolve())} if path else {}


def _one_of[T: (TaskStatus, StatusReason)](words: type[T], given: str) -> str | None:
    """Return the word of *words*. Raises InvalidInput with the known ones for another."""
    if not given:
        return None
    try:
        return words(given).value
    except ValueError:
        raise InvalidInput(f"unknown filter {given!r}; known: {', '.join(word.value for word in words)}") from None


def _whole_number(text: str, name: str) -> int:
    if text.strip() and not (text.strip().isdecimal() and len(text.strip()) < MAX_DIGITS):
        raise InvalidInput(f"{name} must be a whole number")
    return int(text.strip() or 0)
