"""Messages between roles, and what the swarm remembers."""

from __future__ import annotations

from typing import Any

from fireswarm.console.visit import Shown, Visit
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MAILBOX, MEMORY
from fireswarm.storage.memory.fact_documents import is_wrong

SHOWN = 50


async def show_mail(visit: Visit) -> Shown:
    """Make the page of the newest messages."""
    query = queries.newest(MAILBOX, "created_at", SHOWN)
    return Shown("mail.html", {"messages": await visit.swarm.parts.mailbox.read(query)})


async def show_memory(visit: Visit) -> Shown:
    """Make the page of the newest facts, or of those that share a word with a query."""
    text = visit.query.get("query", "").strip()
    facts: list[dict[str, Any]] = []
    if text:
        facts = [fact.model_dump() for fact in await visit.swarm.recall(text, limit=SHOWN)]
    else:
        query = queries.newest(MEMORY, "created_at", SHOWN, type="fact")
        for item in await visit.swarm.parts.store.query(query):
            data = item.data or {}
            named = {"bucket": data.get("bucket", ""), "key": data.get("key", ""), "source": data.get("source", "")}
            learned = {"value": data.get("value"), "learned_at": data.get("created_at"), "wrong": is_wrong(data)}
            facts.append({**named, **learned})
    return Shown("memory.html", {"facts": facts, "query": text})
