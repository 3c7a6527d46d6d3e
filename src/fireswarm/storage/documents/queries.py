"""Every query that the code makes, on one page.

A query with one equality filter, or several and no order, is served by Firestore's automatic
single-field indexes; every other shape needs an entry in ``indexes.COMPOSITES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fireswarm.contracts.ports import NAME, Operator, Query
from fireswarm.contracts.swarm.envelope import MailKind
from fireswarm.storage.documents.paths import CONTEXTS, FILES, MAILBOX, MEMORY, POCKET, RUNS, TASKS


def claimable(role: str, limit: int) -> Query:
    """Queued tasks of a role: priority, then deadline, then age."""
    return Query(
        TASKS,
        where=(("assigned_to", "==", role), ("status", "==", "queued")),
        order_by=(("priority", "desc"), ("deadline", "asc"), ("created_at", "asc")),
        limit=limit,
    )


def claimable_from(role: str, priority: int, place: str, limit: int) -> Query:
    """Queued tasks of one priority from a place among their ids on: ids are hashes, so this spreads claimers."""
    return _spread(role, priority, (("task_id", ">=", place),), limit)


def claimable_before(role: str, priority: int, place: str, limit: int) -> Query:
    """The other part of the circle: queued tasks of one priority before a place among their ids."""
    return _spread(role, priority, (("task_id", "<", place),), limit)


def _spread(role: str, priority: int, where: tuple[tuple[str, Operator, Any], ...], limit: int) -> Query:
    equal: tuple[tuple[str, Operator, Any], ...] = (
        ("assigned_to", "==", role),
        ("status", "==", "queued"),
        ("priority", "==", priority),
    )
    return Query(TASKS, where=(*equal, *where), order_by=(("task_id", "asc"),), limit=limit)


def queued(role: str, limit: int | None = None) -> Query:
    """Queued tasks of a role in no order: finds also documents that lack an ordered field."""
    return Query(TASKS, where=(("assigned_to", "==", role), ("status", "==", "queued")), limit=limit)


def due(role: str, before: datetime, limit: int) -> Query:
    """Tasks of a role that a sweep has to look at, the most overdue first."""
    return Query(
        TASKS,
        where=(("assigned_to", "==", role), ("sweep_at", "<=", before)),
        order_by=(("sweep_at", "asc"),),
        limit=limit,
    )


def next_due(role: str) -> Query:
    """The one task of a role that a sweep has to look at next."""
    return Query(TASKS, where=(("assigned_to", "==", role),), order_by=(("sweep_at", "asc"),), limit=1)


def deliverable(to: str, now: datetime, limit: int) -> Query:
    """Messages that may be claimed: new, or claimed by somebody whose lease ran out."""
    return Query(
        MAILBOX,
        where=(("to_agent_id", "==", to), ("status", "in", ["new", "claimed"]), ("sweep_at", "<=", now)),
        order_by=(("sweep_at", "asc"),),
        limit=limit,
    )


def inbox(agent_id: str) -> Query:
    """New messages to one agent (listened to)."""
    return Query(MAILBOX, where=(("to_agent_id", "==", agent_id), ("status", "==", "new")))


def answers(role: str) -> Query:
    """New messages that answer tasks of a role (listened to); handoffs to the role are no part of it."""
    return Query(
        MAILBOX, where=(("to_agent_id", "==", role), ("kind", "==", MailKind.ANSWERS.value), ("status", "==", "new"))
    )


def recall(session_hash: str, keywords: Sequence[str], limit: int) -> Query:
    """Facts of a session that carry any of at most 30 keywords."""
    return Query(
        MEMORY,
        where=(
            ("session_hash", "==", session_hash),
            ("type", "==", "fact"),
            ("keywords", "array_contains_any", list(keywords)[:30]),
        ),
        limit=limit,
    )


def newest(collection: str, order: str, limit: int, **filters: Any) -> Query:
    """The newest documents of a collection, filtered by equality on any of its listed fields."""
    given: list[tuple[str, Operator, Any]] = [
        (name, "==", value) for name, value in filters.items() if value is not None
    ]
    return Query(collection, where=tuple(given), order_by=((order, "desc"),), limit=limit)


def page(collection: str, order: str, limit: int, after: tuple[Any, str] | None, **filters: Any) -> Query:
    """One page of ``newest``: what comes behind *after*, the ordered value and the path of the last one before it."""
    where = newest(collection, order, limit, **filters).where
    start = None if after is None else {order: after[0], NAME: after[1]}
    return Query(collection, where, ((order, "desc"), (NAME, "desc")), limit, start)


def chain(chain_id: str, limit: int | None = None) -> Query:
    """Every task of one objective: the root and all that was planned below it."""
    return Query(TASKS, where=(("trace.chain_id", "==", chain_id),), limit=limit)


def runs_of(chain_id: str) -> Query:
    """Every run of an objective's tasks (listened to)."""
    return Query(RUNS, where=(("chain_id", "==", chain_id),))


def tasks_in(session_hash: str, status: str) -> Query:
    """Tasks of a session in one status (counted)."""
    return Query(TASKS, where=(("session_hash", "==", session_hash), ("status", "==", status)))


def id_prefix(prefix: str) -> Query:
    """Tasks whose id begins with *prefix*; two are enough to tell that it is not unique."""
    return Query(TASKS, where=(("task_id", ">=", prefix), ("task_id", "<", prefix + "\uf8ff")), limit=2)


def strays(roles: Sequence[str], limit: int) -> Query:
    """Tasks of roles that this swarm does not have (Firestore allows ten values in not-in)."""
    return Query(TASKS, where=(("assigned_to", "not-in", sorted(roles)[:10]),), limit=limit)


def spend(**filters: str) -> Query:
    """What processes spent on models, by session or by day: equality only, so no composite index is needed."""
    return Query(MEMORY, where=(("type", "==", "spend"), *((name, "==", value) for name, value in filters.items())))


def journal(run: str) -> Query:
    """The pages of a run's journal, by the path of its document: in the order of their names."""
    return Query(f"{run}/journal")


def pocket(context: str) -> Query:
    """The facts of a conversation, by the path of its document."""
    return Query(f"{context}/{POCKET}")


def ended_contexts(before: datetime, limit: int) -> Query:
    """Conversations whose time was over at a moment; those that wait have none."""
    return Query(CONTEXTS, where=(("expires_at", "<=", before),), limit=limit)


def session_files(session_hash: str, lower: str, upper: str, limit: int | None = None) -> Query:
    """Files of a session whose path is *lower* or after it and before *upper*: a folder, or a part of it."""
    return Query(
        FILES,
        where=(("session_hash", "==", session_hash), ("path", ">=", lower), ("path", "<", upper)),
        order_by=(("path", "asc"),),
        limit=limit,
    )
