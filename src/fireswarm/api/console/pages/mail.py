"""Messages between roles, and what the swarm remembers."""

from __future__ import annotations

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MAILBOX, MEMORY
from fireswarm.storage.documents.read import parse_readable
from fireswarm.storage.memory.fact_documents import parse_fact

SHOWN = 50


async def show_mail(visit: Visit) -> Shown:
    """Make the page of the newest messages."""
    query = queries.newest(MAILBOX, "created_at", SHOWN)
    return Shown("mail.html", {"messages": await visit.swarm.parts.mailbox.read(query)})


async def show_memory(visit: Visit) -> Shown:
    """Make the page of the newest facts, or of those that share a word with a query."""
    text = visit.query.get("query", "").strip()
    if text:
        facts = await visit.swarm.recall(text, limit=SHOWN)
    else:
        query = queries.newest(MEMORY, "created_at", SHOWN, type="fact")
        facts = parse_readable(await visit.swarm.parts.store.query(query), parse_fact)
    return Shown("memory.html", {"facts": facts, "query": text})
