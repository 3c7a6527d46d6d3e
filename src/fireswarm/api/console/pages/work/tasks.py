"""The list of tasks with filters, and what is done to several of them at once."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from fireswarm.api.console.pages.spans import SPANS, span_of
from fireswarm.api.console.visit import Shown, Visit
from fireswarm.api.paging import DEFAULT_LIMIT
from fireswarm.api.reading.task_pages import TaskFilters, read_task_page
from fireswarm.client import Swarm
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import FireswarmError, InvalidInput, NotFound
from fireswarm.storage.documents import queries

MAX_TEXT_CHARS = 200

SORTED, SORTED_SECONDS = 500, 60.0
"""Number of tasks among which the slowest are found, and how long they are kept: each costs a read."""

TEXT_SECONDS = 30.0
"""How long a page of a search for words is kept: it reads up to 500 tasks."""

FILTERS = ("status", "reason", "role", "within", "text", "session")
PRIORITY, PRIORITIES = "priority", frozenset(map(str, range(1, 11)))
CHOSEN, SHOWN = "task-", "shown-"
"""Beginnings of the names of fields: of each chosen task, and of each on the page; its id follows."""


async def show(visit: Visit) -> Shown:
    """Make the list: fifty tasks, most recently changed first."""
    given = {name: visit.query.get(name, "").strip() for name in FILTERS}
    chosen = _filters_of(visit, given)
    if visit.query.get("sort") == "slowest":
        return Shown(
            "tasks.html",
            {**await _find_slowest(visit, chosen), **_words(visit, given), "is_slowest": True, "missing": 0},
        )
    store, redactor = visit.swarm.parts.store, visit.console.redactor
    cursor = visit.query.get("cursor") or None
    key, seconds = ("list", *given.values(), cursor), TEXT_SECONDS if given["text"] else 0.0
    page = await visit.console.feed.remember(
        key, seconds, lambda: read_task_page(store, redactor, chosen, DEFAULT_LIMIT, cursor)
    )
    following = {**{name: value for name, value in given.items() if value}, "cursor": page.next_cursor}
    values = {
        "tasks": page.items,
        "unreadable": page.unreadable,
        "next": urlencode(following) if page.next_cursor else "",
        "first": cursor is None,
    }
    is_whole = cursor is None and not page.next_cursor
    missing = await _count_missing(visit, given, len(page.items) + len(page.unreadable)) if is_whole else 0
    return Shown("tasks.html", {**values, **_words(visit, given), "is_slowest": False, "missing": missing})


async def _count_missing(visit: Visit, given: Mapping[str, str], listed: int) -> int:
    """Return how many tasks with the only chosen status are in no list, since they lack the time of its order."""
    if [name for name in FILTERS if given[name]] != ["status"]:
        return 0
    return max(0, await visit.swarm.parts.store.count(queries.with_status(given["status"])) - listed)


def _filters_of(visit: Visit, given: Mapping[str, str]) -> TaskFilters:
    """Return the filters of the form. Raises InvalidInput for an unknown word."""
    since, until = span_of(_one_of(SPANS, given["within"]), visit.swarm.parts.clock.now())
    return TaskFilters(
        status=TaskStatus(word) if (word := _one_of(_words_of(TaskStatus), given["status"])) else None,
        reason=StatusReason(word) if (word := _one_of(_words_of(StatusReason), given["reason"])) else None,
        role=given["role"] or None,
        since=since,
        until=until,
        text=given["text"][:MAX_TEXT_CHARS],
        session=given["session"] or None,
    )


def _words_of(words: type[StrEnum]) -> list[str]:
    return [word.value for word in words]


def _words(visit: Visit, given: Mapping[str, str]) -> dict[str, Any]:
    """Return what the filters offer, and what is chosen."""
    return {
        "given": given,
        "statuses": _words_of(TaskStatus),
        "reasons": _words_of(StatusReason),
        "spans": SPANS,
        "roles": sorted(visit.swarm.parts.roles),
    }


async def _find_slowest(visit: Visit, chosen: TaskFilters) -> dict[str, Any]:
    """Return the tasks that took longest, of those that changed last: no field of a document says how long."""
    store, redactor = visit.swarm.parts.store, visit.console.redactor
    key = replace(chosen, since=None, until=None), visit.query.get("within", "")
    page = await visit.console.feed.remember(
        key, SORTED_SECONDS, lambda: read_task_page(store, redactor, chosen, SORTED, None)
    )
    ended = [task for task in page.items if task.ended_at is not None]
    ended.sort(key=lambda task: (task.ended_at or task.created_at) - task.created_at, reverse=True)
    return {"tasks": ended[:DEFAULT_LIMIT], "unreadable": page.unreadable, "next": "", "first": True}


async def act_on_chosen(visit: Visit) -> Shown:
    """Show what would happen to the chosen tasks, or do it and report each outcome: one fault never stops the rest."""
    do, form = visit.form.get("do", ""), visit.form
    priority = form.get("priority", "").strip() if do == PRIORITY else ""
    if do not in ("retry", "cancel", PRIORITY) or (do == PRIORITY and priority not in PRIORITIES):
        raise InvalidInput("choose what to do with the tasks, and a priority of 1 to 10 if you set one: go back")
    beginning = SHOWN if form.get("all") == "yes" else CHOSEN
    ids = [name.removeprefix(beginning) for name in form if name.startswith(beginning)]
    if not ids:
        raise InvalidInput("no task is chosen: go back, and choose some")
    tasks: list[Task] = []
    for task_id in ids[:DEFAULT_LIMIT]:
        with contextlib.suppress(NotFound, InvalidInput):  # deleted meanwhile, or unreadable
            tasks.append(await visit.swarm.get(task_id))
    outcomes = None
    if form.get("sure") == "yes":
        outcomes = [(task, await _outcome_of(visit.swarm, task, do, priority)) for task in tasks]
    return Shown("chosen.html", {"do": do, "priority": priority, "tasks": tasks, "outcomes": outcomes})


async def _outcome_of(swarm: Swarm, task: Task, do: str, priority: str) -> str:
    """Retry or cancel one task, or set its priority; return what happened in words."""
    try:
        if do == PRIORITY:
            return f"its priority is {(await swarm.prioritize(task, int(priority))).priority} now"
        if do == "cancel":
            canceled = await swarm.cancel(task, "by the console")
            return f"{count_noun(len(canceled), 'task')} canceled" if canceled else "it had ended before"
        retried = await swarm.retry_tree(task)
        late = task.deadline <= swarm.parts.clock.now()
        said = f"{count_noun(len(retried), 'task')} queued again"
        return f"{said}, without a deadline that has passed" if late else said
    except FireswarmError as error:
        return f"not changed: {error}"


def _one_of(words: Collection[str], given: str) -> str:
    """Return a word of *words*, or "" for none. Raises InvalidInput with the known ones for another."""
    if given and given not in words:
        raise InvalidInput(f"unknown filter {given!r}; known: {', '.join(words)}")
    return given
