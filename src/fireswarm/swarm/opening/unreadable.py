"""Find documents that no page and no agent can read, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fireswarm.contracts.ports import Snapshot, Store
from fireswarm.errors import NewerDocument
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import AGENTS, MAILBOX, MEMORY, NOTICES, RUNS, TASKS
from fireswarm.storage.documents.read import parse_all, parse_run_snapshot, parse_task_snapshot
from fireswarm.storage.memory import parse_fact
from fireswarm.swarm.notices.notice import parse_notice
from fireswarm.swarm.records.heartbeats import parse_status
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.submission.stored_agents import parse_agent

MOST_DOCUMENTS = 100
"""Documents of one kind that are read: the newest, which pages show first, and as many in the order of their ids."""

_KINDS: Sequence[tuple[str, str, Callable[[Snapshot], object], dict[str, str]]] = (
    (TASKS, "updated_at", parse_task_snapshot, {}),
    (RUNS, "started_at", parse_run_snapshot, {}),
    (MAILBOX, "created_at", parse_message, {}),
    (MEMORY, "created_at", parse_fact, {"type": "fact"}),
    (MEMORY, "created_at", parse_fact, {"type": "session_summary"}),
    (MEMORY, "created_at", parse_status, {"type": "agent_status"}),
    (AGENTS, "created_at", parse_agent, {}),
    (NOTICES, "", parse_notice, {}),
)
"""Collections with the field of their order, or "", how they are read, and the type of their documents."""


async def find_unreadable(store: Store) -> dict[str, str]:
    """Return the reasons by path, of up to 200 documents of each kind. Schedules are not among them."""
    faults: dict[str, str] = {}
    for collection, order, parse, filters in _KINDS:
        newest = queries.newest(collection, order, MOST_DOCUMENTS, **filters)
        chosen = [newest] if order else []
        for query in (*chosen, replace(newest, order_by=())):  # the second one also finds those without a time
            for snapshot, error in parse_all(await store.query(query), parse)[1]:
                advice = "" if isinstance(error, NewerDocument) else ". Correct the document, or delete it"
                faults[snapshot.path] = f"{str(error).rstrip('.')}{advice}"
    return faults
