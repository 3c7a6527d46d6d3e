"""The store as it is: how many documents each collection has, and the documents themselves, a page at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.contracts.ports import Query, Snapshot
from fireswarm.errors import NotFound
from fireswarm.storage.documents import paths, queries

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
    paths.REQUESTS: "responses to repeated requests of the API",
}
"""The collections that fireswarm writes, and what is in them."""

SHOWN = 25
"""Documents on one page: each costs a read."""

COUNTED_SECONDS = 60.0
"""How long the counts are kept: a count costs a read for each thousand documents."""


async def show(visit: Visit) -> Shown:
    """Make the page of the collections."""
    counts = await visit.console.feed.remember("documents by collection", COUNTED_SECONDS, lambda: _count(visit))
    rows = [(name, meaning, counts[name]) for name, meaning in COLLECTIONS.items()]
    return Shown("store.html", {"rows": rows, "uri": visit.swarm.parts.settings.store.uri})


async def _count(visit: Visit) -> dict[str, int]:
    return {name: await visit.swarm.parts.store.count(Query(name)) for name in COLLECTIONS}


async def show_collection(visit: Visit) -> Shown:
    """Make a page of documents, in the order of their ids. Raises NotFound for a collection of another program."""
    name, after = visit.path["collection"], visit.query.get("after", "")
    if name not in COLLECTIONS:
        raise NotFound(f"there is no collection {name}")
    found = await visit.swarm.parts.store.query(queries.by_id(name, SHOWN + 1, after))
    rows = [(snapshot.id, snapshot.update_time, _as_text(snapshot)) for snapshot in found[:SHOWN]]
    following = found[SHOWN - 1].id if len(found) > SHOWN else ""
    return Shown("documents.html", {"name": name, "rows": rows, "next": following, "after": after})


def _as_text(snapshot: Snapshot) -> str:
    """Return a document as JSON, with its fields in order."""
    return json.dumps(dict(snapshot.data or {}), indent=1, ensure_ascii=False, default=str, sort_keys=True)
