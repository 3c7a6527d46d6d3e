"""The store as it is: its collections, their documents a page at a time, queries with their plan, and backups."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

import anyio
from anyio import to_thread

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.api.models.base import storable
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.ports import Operator, Query, Snapshot
from fireswarm.errors import InvalidInput, NotFound, StoreError
from fireswarm.storage.documents import paths, queries
from fireswarm.swarm.opening.archive import back_up_now, data_in_use, measure
from fireswarm.swarm.opening.unreadable import find_unreadable

COLLECTIONS: Mapping[str, str] = {
    paths.TASKS: "tasks",
    paths.KEYS: "which task owns which work",
    paths.RUNS: "runs, one for each claim of a task",
    paths.MAILBOX: "messages between roles",
    paths.MEMORY: "facts, heartbeats, costs, budgets",
    paths.VECTORS: "facts by meaning",
    paths.FILES: "files of workspaces in the store",
    paths.CONTEXTS: "conversations of skills",
    paths.AGENTS: "agents that were stored by the API",
    paths.NOTICES: "notices to people",
    paths.SCHEDULES: "objectives that are submitted again and again",
    paths.REQUESTS: "responses to repeated requests of the API, and messages of A2A clients",
}
"""The collections that fireswarm writes, and what is in them."""

SHOWN = 25
"""Documents on one page: each costs a read."""

COUNTED_SECONDS = 60.0
"""How long the counts are kept: a count costs a read for each thousand documents."""


CHECKED_SHOWN = 100
"""Documents with a fault that the page shows."""

OPERATORS: tuple[str, ...] = get_args(Operator)

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}(\.[A-Za-z_][A-Za-z0-9_]{0,99}){0,5}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?")


async def show(visit: Visit) -> Shown:
    """Make the page of the collections."""
    parts, feed = visit.swarm.parts, visit.console.feed
    counts = await feed.keep("documents by collection", COUNTED_SECONDS, lambda: _count(visit))
    rows = [(name, meaning, counts[name]) for name, meaning in COLLECTIONS.items()]
    data = data_in_use(parts.settings)
    size = None
    if data is not None and data.is_file():
        size = await feed.remember("size", COUNTED_SECONDS, lambda: to_thread.run_sync(measure, data))
    values = {
        "rows": rows,
        "uri": parts.settings.store.uri,
        "size": size,
        "kept": await feed.keep("due", COUNTED_SECONDS, lambda: _count_due(visit)),
        "operators": OPERATORS,
    }
    return Shown("store.html", values)


async def _count(visit: Visit) -> dict[str, int]:
    return {name: await visit.swarm.parts.store.count(Query(name)) for name in COLLECTIONS}


async def _count_due(visit: Visit) -> list[tuple[str, str, int]]:
    """Return what is deleted after a time, that time in words, and how many documents have reached it."""
    parts = visit.swarm.parts
    now, days = parts.clock.now(), parts.mailbox.policy.retention_days
    old = Query(paths.MAILBOX, (("created_at", "<=", now - timedelta(days=days)),))
    ended = Query(paths.CONTEXTS, (("expires_at", "<=", now),))
    return [
        (paths.MAILBOX, f"{days:g} days after a message was sent", await parts.store.count(old)),
        (
            paths.CONTEXTS,
            f"{parts.settings.state.retention_days:g} days after a conversation ended",
            await parts.store.count(ended),
        ),
    ]


async def back_up(visit: Visit) -> Goto:
    """Write a backup of the store of this machine. Raises InvalidInput for a store elsewhere."""
    settings = visit.swarm.parts.settings
    with anyio.CancelScope(shield=True):  # the time limit of a page is not that of a backup
        await to_thread.run_sync(back_up_now, settings, visit.swarm.parts.clock.now())
    visit.console.feed.forget()
    return Goto("/store", "backed_up")


async def show_query(visit: Visit) -> Shown:
    """Run a query, and make the page of its results and its plan. Raises InvalidInput for what is no query."""
    if not visit.visitor.acts:
        raise InvalidInput("this link may only look at pages: queries need a link of an operator")
    given = {name: visit.query.get(name, "").strip() for name in ("collection", "field", "operator", "value", "order")}
    given["collection"] = given["collection"] or paths.TASKS
    found, fault = None, ""
    try:
        found = await visit.swarm.parts.store.explain(_read_query(given))
    except InvalidInput as error:
        fault = str(error)
    except StoreError as error:
        if error.retryable:
            raise
        fault = f"the store refuses this query: {error}"  # of a person, and no fault of ours
    rows = [_row(snapshot) for snapshot in found.snapshots] if found else []
    form = {"given": given, "collections": list(COLLECTIONS), "operators": OPERATORS}
    return Shown("query.html", {**form, "rows": rows, "found": found, "fault": fault}, 422 if fault else 200)


def _read_query(given: Mapping[str, str]) -> Query:
    """Return the query of a form. Raises InvalidInput."""
    name, field, operator, order = given["collection"], given["field"], given["operator"], given["order"]
    if name not in COLLECTIONS:
        raise InvalidInput(f"there is no collection {name!r}; known: {', '.join(COLLECTIONS)}")
    for path in filter(None, (field, order.removeprefix("-"))):
        if not _FIELD.fullmatch(path):
            raise InvalidInput(f"{path!r} is no field: write it as status, or trace.chain_id")
    if field and operator not in OPERATORS:
        raise InvalidInput(f"unknown operator {operator!r}; known: {', '.join(OPERATORS)}")
    where: tuple[tuple[str, Operator, Any], ...] = (
        ((field, cast("Operator", operator), _read_value(given["value"], operator)),) if field else ()
    )
    direction = "desc" if order.startswith("-") else "asc"
    return Query(name, where, ((order.removeprefix("-"), direction),) if order else (), SHOWN)


def _read_value(text: str, operator: str) -> Any:
    """Return the value that a text is: a time, JSON, or the text itself. Raises InvalidInput for what is no list."""
    value: Any = text
    try:
        value = storable(json.loads(text))
    except (ValueError, RecursionError):
        if _TIME.fullmatch(text):
            value = _read_time(text)
    if operator in ("in", "not-in", "array_contains_any") and not isinstance(value, list):
        raise InvalidInput(f'{operator} takes a list of values, such as ["done", "canceled"]')
    return value


async def show_check(visit: Visit) -> Shown:
    """Make the page of what nobody will work on, and of what cannot be read, each with its reason."""
    found = await visit.console.feed.keep("check", COUNTED_SECONDS, lambda: _check(visit))
    return Shown("check.html", {"found": found[:CHECKED_SHOWN], "more": max(0, len(found) - CHECKED_SHOWN)})


async def _check(visit: Visit) -> list[tuple[str, str, str]]:
    """Return the collection, the id and the reason of each document that needs a person."""
    found: list[tuple[str, str, str]] = []
    for stall in await visit.swarm.stalls():
        collection, _, name = stall.path.partition("/")
        found.append((collection, name, stall.reason))
    known = {(collection, name) for collection, name, _ in found}
    for path, reason in (await find_unreadable(visit.swarm.parts.store)).items():
        collection, _, name = path.partition("/")
        if (collection, name) not in known:
            found.append((collection, name, reason))
    return [*found, *((paths.SCHEDULES, name, why) for name, why in await visit.swarm.schedules.find_idle())]


async def show_collection(visit: Visit) -> Shown:
    """Make a page of documents, in the order of their ids, or of the one that the address names.

    Raises NotFound for a collection of another program.
    """
    name, after, only = visit.path["collection"], visit.query.get("after", ""), visit.query.get("id", "")
    if name not in COLLECTIONS:
        raise NotFound(f"there is no collection {name}")
    if only:
        rows = [_row(each) for each in await _find_one(visit, name, only)]
        return Shown("documents.html", {"name": name, "rows": rows, "next": "", "after": "", "only": only})
    found = await visit.swarm.parts.store.query(queries.by_id(name, SHOWN + 1, after))
    rows = [_row(snapshot) for snapshot in found[:SHOWN]]
    following = found[SHOWN - 1].id if len(found) > SHOWN else ""
    return Shown("documents.html", {"name": name, "rows": rows, "next": following, "after": after, "only": ""})


async def _find_one(visit: Visit, collection: str, name: str) -> list[Snapshot]:
    """Return a document, or nothing."""
    if not is_document_id(name):
        return []
    found = await visit.swarm.parts.store.get(f"{collection}/{name}")
    return [] if found.data is None else [found]


def _read_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no time: {error}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _row(snapshot: Snapshot) -> tuple[str, datetime, Any]:
    """Return the id of a document, the time of its last change, and its fields in order."""
    return snapshot.id, snapshot.update_time.ToDatetime(tzinfo=UTC), dict(sorted((snapshot.data or {}).items()))
