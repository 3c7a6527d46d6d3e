"""Messages between roles, of all tasks or of one."""

from __future__ import annotations

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MAILBOX

SHOWN = 50


async def show(visit: Visit) -> Shown:
    """Make the page of the newest messages."""
    task = visit.query.get("task", "").strip()
    query = queries.newest(MAILBOX, "created_at", SHOWN, task_id=task or None)
    return Shown("mail.html", {"messages": await visit.swarm.parts.mailbox.read(query), "task": task})
