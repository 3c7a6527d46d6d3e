"""All queries of the code.

Firestore's automatic single-field indexes serve a query with one equality filter, or with several and no order;
every other query needs an entry in ``indexes.COMPOSITES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fireswarm.contracts.ports import NAME, Nearest, Operator, Query
from fireswarm.contracts.swarm.envelope import MailKind
from fireswarm.storage.documents.paths import (
    CONTEXTS,
    FILES,
    MAILBOX,
    MEMORY,
    NOTICES,
    POCKET,
    RUNS,
    SCHEDULES,
    TASKS,
    VECTORS,
    VERSIONS,
)

Filters = tuple[tuple[str, Operator, Any], ...]
Span = tuple[datetime | None, datetime | None]

_IN_SPAN: tuple[Operator, Operator] = (">=", "<")


def _of_sessions(sessions: Sequence[str]) -> Filters:
    """Return the filter for tasks of some sessions; no filter for all."""
    if not sessions:
        return ()
    return (("session_hash", "==", sessions[0]),) if len(sessions) == 1 else (("session_hash", "in", [*sessions]),)


def claimable(role: str, limit: int | None = None, sessions: Sequence[str] = ()) -> Query:
    """Queued tasks of a role by priority, then deadline, then age.

    Without a limit it is counted: documents with a number as their priority, and with all fields of the order.
    """
    countable: Filters = (("priority", ">=", 1),) if limit is None else ()
    return Query(
        TASKS,
        where=(("assigned_to", "==", role), ("status", "==", "queued"), *_of_sessions(sessions), *countable),
        order_by=(("priority", "desc"), ("deadline", "asc"), ("created_at", "asc")),
        limit=limit,
    )


def claimable_from(role: str, priority: int, place: str, limit: int, sessions: Sequence[str] = ()) -> Query:
    """Queued tasks of one priority with ids from *place* on. Ids are hashes, so random places spread the claimers."""
    return _spread(role, priority, (("task_id", ">=", place), *_of_sessions(sessions)), limit)


def claimable_before(role: str, priority: int, place: str, limit: int, sessions: Sequence[str] = ()) -> Query:
    """Queued tasks of one priority with ids before *place*: the rest after the end of the id range."""
    return _spread(role, priority, (("task_id", "<", place), *_of_sessions(sessions)), limit)


def _spread(role: str, priority: int, where: Filters, limit: int) -> Query:
    equal: Filters = (("assigned_to", "==", role), ("status", "==", "queued"), ("priority", "==", priority))
    return Query(TASKS, where=(*equal, *where), order_by=(("task_id", "asc"),), limit=limit)


def queued_tasks(role: str, limit: int | None = None, sessions: Sequence[str] = ()) -> Query:
    """Queued tasks of a role without order: also finds documents that lack an ordered field."""
    where: Filters = (("assigned_to", "==", role), ("status", "==", "queued"), *_of_sessions(sessions))
    return Query(TASKS, where=where, limit=limit)


def queued_slice(role: str, begin: str, end: str, limit: int) -> Query:
    """Queued tasks of a role with *begin* <= ``task_id`` < *end* (listened to); "" is no bound."""
    lower: Filters = (("task_id", ">=", begin),) if begin else ()
    upper: Filters = (("task_id", "<", end),) if end else ()
    where: Filters = (("assigned_to", "==", role), ("status", "==", "queued"), *lower, *upper)
    return Query(TASKS, where, (("task_id", "asc"),), limit)


def idle_agents(role: str, since: datetime) -> Query:
    """Heartbeats of idle agents of a role since a time (counted)."""
    where: Filters = (("type", "==", "agent_status"), ("role", "==", role), ("status", "==", "idle"))
    return Query(MEMORY, (*where, ("created_at", ">=", since)), (("created_at", "desc"),))


def queued_after(role: str, task_id: str, limit: int) -> Query:
    """A page of queued tasks of a role by document id, after *task_id*."""
    where: Filters = (("assigned_to", "==", role), ("status", "==", "queued"))
    start = {NAME: f"{TASKS}/{task_id}"} if task_id else None
    return Query(TASKS, where, ((NAME, "asc"),), limit, start)


def in_progress(role: str) -> Query:
    """Running tasks of a role (counted, and read if one has no lease)."""
    return Query(TASKS, where=(("assigned_to", "==", role), ("status", "==", "in_progress")), limit=1_000)


def with_lease(role: str) -> Query:
    """Running tasks of a role with a lease that expires at some time (counted)."""
    long_ago = datetime(1970, 1, 1, tzinfo=UTC)
    return Query(
        TASKS,
        where=(("assigned_to", "==", role), ("status", "==", "in_progress"), ("lease.expires_at", ">=", long_ago)),
        order_by=(("lease.expires_at", "asc"),),
        limit=1_000,
    )


def oldest_queued(role: str, sessions: Sequence[str] = ()) -> Query:
    """The queued task of a role that was created first."""
    where: Filters = (("assigned_to", "==", role), ("status", "==", "queued"), *_of_sessions(sessions))
    return Query(TASKS, where=where, order_by=(("created_at", "asc"),), limit=1)


def queued_before(role: str, before: datetime, limit: int, sessions: Sequence[str] = ()) -> Query:
    """Queued tasks of a role that were created before a time, oldest first."""
    old: Filters = (("created_at", "<=", before),)
    where: Filters = (("assigned_to", "==", role), ("status", "==", "queued"), *_of_sessions(sessions), *old)
    return Query(TASKS, where=where, order_by=(("created_at", "asc"),), limit=limit)


def due(role: str, before: datetime, limit: int) -> Query:
    """Tasks of a role that a sweep must check, most overdue first."""
    where: Filters = (("assigned_to", "==", role), ("sweep_at", "<=", before))
    return Query(TASKS, where=where, order_by=(("sweep_at", "asc"),), limit=limit)


def next_due(role: str, limit: int = 1) -> Query:
    """The tasks of a role that a sweep must check next. A ``sweep_at`` that is null or a number sorts first."""
    return Query(TASKS, where=(("assigned_to", "==", role),), order_by=(("sweep_at", "asc"),), limit=limit)


def ended_by_hand(role: str) -> Query:
    """Tasks of a role that a person set to canceled or done and whose end is not settled yet (listened to)."""
    return Query(
        TASKS,
        where=(("assigned_to", "==", role), ("open", "==", True), ("status", "in", ["canceled", "done"])),
        limit=50,
    )


def awaited_by(task_id: str, status: str | None = None) -> Query:
    """Children of a task, and its past and present dependencies (counted)."""
    of_status: Filters = () if status is None else (("status", "==", status),)
    return Query(TASKS, where=(("dependents", "array_contains", task_id), *of_status))


def expired_leases(role: str, now: datetime, limit: int) -> Query:
    """Running tasks of a role with an expired lease, including those without ``sweep_at``."""
    expired: Filters = (("status", "==", "in_progress"), ("lease.expires_at", "<=", now))
    where: Filters = (("assigned_to", "==", role), *expired)
    return Query(TASKS, where=where, order_by=(("lease.expires_at", "asc"),), limit=limit)


def inbox(receiver: str, limit: int | None = None) -> Query:
    """New messages to one agent (listened to), or to a role."""
    return Query(MAILBOX, where=(("to_agent_id", "==", receiver), ("status", "==", "new")), limit=limit)


def new_mail(limit: int) -> Query:
    """New messages to all."""
    return Query(MAILBOX, where=(("status", "==", "new"),), limit=limit)


def odd_mail(limit: int) -> Query:
    """Messages with a status that no agent looks for. Messages without a status are not found by any filter."""
    return Query(MAILBOX, where=(("status", "not-in", ["new", "claimed", "read"]),), limit=limit)


def answers(role: str) -> Query:
    """New messages that answer tasks of a role (listened to); handoffs to the role are excluded."""
    return Query(
        MAILBOX, where=(("to_agent_id", "==", role), ("kind", "==", MailKind.ANSWERS.value), ("status", "==", "new"))
    )


def work_messages(role: str) -> Query:
    """New messages that ask a role for work, and orders to it (listened to), without envelopes of planned tasks."""
    kinds = [MailKind.MESSAGE.value, MailKind.ORDER.value]
    return Query(MAILBOX, where=(("to_agent_id", "==", role), ("kind", "in", kinds), ("status", "==", "new")))


def orders(limit: int | None, ids: Sequence[str] = ()) -> Query:
    """Orders of an operator that are in force, to all roles, or those with some ids, at most 30."""
    named: Filters = (("task_id", "in", [*ids]),) if ids else (("kind", "==", MailKind.ORDER.value),)
    return Query(MAILBOX, where=(*named, ("status", "==", "new")), limit=limit)


def known_facts(scope: str, name: str, limit: int) -> Query:
    """Facts and summaries of a session or project; *scope* is the field with its name (also counted).

    They have no order, which would hide a hand-written document without the ordered field.
    """
    return Query(MEMORY, where=((scope, "==", name), ("type", "in", ["fact", "session_summary"])), limit=limit)


def new_facts(scope: str, name: str, since: datetime, limit: int) -> Query:
    """Facts and summaries of a session or a project that were stored since a time, newest first."""
    where: Filters = ((scope, "==", name), ("type", "in", ["fact", "session_summary"]), ("created_at", ">=", since))
    return Query(MEMORY, where=where, order_by=(("created_at", "desc"),), limit=limit)


def fact_versions(fact: str) -> Query:
    """The values that a fact has had; *fact* is the path of its document."""
    return Query(f"{fact}/{VERSIONS}")


def nearest_facts(scope: str, name: str, model: str, vector: tuple[float, ...], limit: int) -> Query:
    """The vectors of one session or project, of one embedding model, that are nearest to *vector*."""
    return Query(VECTORS, ((scope, "==", name), ("model", "==", model)), nearest=Nearest("vector", vector, limit))


def newest(collection: str, order: str, limit: int, **filters: Any) -> Query:
    """The newest documents of a collection, filtered by the values of indexed fields; a list names several values."""
    given: list[tuple[str, Operator, Any]] = [
        (name, "in" if isinstance(value, list) else "==", value) for name, value in filters.items() if value is not None
    ]
    return Query(collection, where=tuple(given), order_by=((order, "desc"),), limit=limit)


def page(
    collection: str, order: str, limit: int, after: tuple[Any, str] | None, span: Span = (None, None), **filters: Any
) -> Query:
    """One page of ``newest``; *after* is the sort value and the path of the previous page's last document.

    *span* are the bounds of the sort value: at or after the first, and before the second. None is no bound.
    """
    bounds: Filters = tuple(
        (order, operator, at) for operator, at in zip(_IN_SPAN, span, strict=True) if at is not None
    )
    where = (*newest(collection, order, limit, **filters).where, *bounds)
    start = None if after is None else {order: after[0], NAME: after[1]}
    return Query(collection, where, ((order, "desc"), (NAME, "desc")), limit, start)


def heartbeats(limit: int, *, role: str | None = None, since: datetime | None = None) -> Query:
    """The newest heartbeats, of all roles or of one, optionally since a time."""
    of_role: Filters = () if role is None else (("role", "==", role),)
    later: Filters = () if since is None else (("created_at", ">=", since),)
    where: Filters = (("type", "==", "agent_status"), *of_role, *later)
    return Query(MEMORY, where=where, order_by=(("created_at", "desc"),), limit=limit)


def one_task(task_id: str) -> Query:
    """The task with an id (listened to)."""
    return Query(TASKS, where=(("task_id", "==", task_id),), limit=1)


def chain(chain_id: str, limit: int | None = None) -> Query:
    """All tasks of one objective: the root and the tasks planned below it."""
    return Query(TASKS, where=(("trace.chain_id", "==", chain_id),), limit=limit)


def thread_of(task_id: str) -> Query:
    """The tasks that go on with the conversation of which a task was the first."""
    return Query(TASKS, where=(("thread_id", "==", task_id),))


def by_id(collection: str, limit: int, after: str = "") -> Query:
    """A page of any collection by document id, after the id *after*."""
    start = {NAME: f"{collection}/{after}"} if after else None
    return Query(collection, (), ((NAME, "asc"),), limit, start)


def continuing(task_id: str) -> Query:
    """The tasks that go on with a task's own conversation, and its forks: the first 100."""
    return Query(TASKS, where=(("continues", "==", task_id),), limit=100)


def runs_of(chain_id: str) -> Query:
    """All runs of an objective's tasks (listened to)."""
    return Query(RUNS, where=(("chain_id", "==", chain_id),))


def tasks_in(session_hash: str, status: str) -> Query:
    """Tasks of a session in one status (counted)."""
    return Query(TASKS, where=(("session_hash", "==", session_hash), ("status", "==", status)))


def dead_letters(limit: int) -> Query:
    """Tasks that were given up or set aside."""
    return Query(TASKS, where=(("status_reason", "==", "dead_letter"),), limit=limit)


def created_by(origin: str, role: str, session_hash: str, status: str | None, limit: int) -> Query:
    """Tasks of a role and session that have one origin, such as ``a2a`` (counted)."""
    of_status: Filters = () if status is None else (("status", "==", status),)
    where: Filters = (("created_by", "==", origin), ("assigned_to", "==", role), ("session_hash", "==", session_hash))
    return Query(TASKS, where=(*where, *of_status), limit=limit)


def unknown_statuses(limit: int) -> Query:
    """Tasks with a status that no agent looks for. Tasks without a status are not found by any filter."""
    return Query(TASKS, (("status", "not-in", ["queued", "in_progress", "blocked", "done", "canceled"]),), limit=limit)


def with_status(status: str, limit: int | None = None) -> Query:
    """Tasks with a status, of all roles; counted without a limit."""
    return Query(TASKS, where=(("status", "==", status),), limit=limit)


def blocked_by(reason: str) -> Query:
    """Blocked tasks with a reason (counted)."""
    return Query(TASKS, where=(("status", "==", "blocked"), ("status_reason", "==", reason)))


def needing_person(role: str, reasons: Sequence[str], limit: int) -> Query:
    """The tasks of a role that were blocked last for one of these reasons (listened to)."""
    where: Filters = (("assigned_to", "==", role), ("status", "==", "blocked"), ("status_reason", "in", [*reasons]))
    return Query(TASKS, where=where, order_by=(("updated_at", "desc"),), limit=limit)


def ended_since(role: str, since: datetime, limit: int) -> Query:
    """The newest objectives of a role that ended at or after *since* (listened to)."""
    ended: Filters = (("trace.step", "==", 0), ("status", "in", ["done", "canceled"]))
    where: Filters = (("assigned_to", "==", role), *ended, ("updated_at", ">=", since))
    return Query(TASKS, where=where, order_by=(("updated_at", "desc"),), limit=limit)


def new_notices(role: str, receivers: Sequence[str], limit: int) -> Query:
    """Notices about tasks of a role that some receivers did not get yet, those due first (listened to)."""
    where: Filters = (("role", "==", role), ("state", "==", "new"), ("receiver", "in", [*receivers]))
    return Query(NOTICES, where=where, order_by=(("not_before", "asc"),), limit=limit)


def failed_notices() -> Query:
    """Notices that were given up (counted)."""
    return Query(NOTICES, where=(("state", "==", "failed"),))


def schedules_of(role: str) -> Query:
    """The schedules of a role, also those that lack a field (listened to)."""
    return Query(SCHEDULES, where=(("assigned_to", "==", role),))


def schedules_in(session_hash: str, limit: int) -> Query:
    """Schedules of a session."""
    return Query(SCHEDULES, where=(("session_hash", "==", session_hash),), limit=limit)


def changed_between(status: str, since: datetime, before: datetime) -> Query:
    """Tasks with a status that changed last at or after *since*, and before *before* (counted)."""
    where: Filters = (("status", "==", status), ("updated_at", ">=", since), ("updated_at", "<", before))
    return Query(TASKS, where=where, order_by=(("updated_at", "desc"),))


def failed_runs(since: datetime, before: datetime) -> Query:
    """Runs with an error or a timeout that began at or after *since*, and before *before* (counted)."""
    where: Filters = (("status", "in", ["error", "timeout"]), ("started_at", ">=", since), ("started_at", "<", before))
    return Query(RUNS, where=where, order_by=(("started_at", "desc"),))


def by_key(first: str, last: str, limit: int) -> Query:
    """Tasks with a ``fresh_key`` from *first* to *last*, the last one first."""
    return Query(TASKS, (("fresh_key", ">=", first), ("fresh_key", "<=", last)), (("fresh_key", "desc"),), limit)


def spend(**filters: str) -> Query:
    """Model spending of processes, by session or by day. Equality filters only, so no composite index is needed."""
    return Query(MEMORY, where=(("type", "==", "spend"), *((name, "==", value) for name, value in filters.items())))


def journal(run: str) -> Query:
    """The pages of a run's journal, in the order of their names; *run* is the path of the run document."""
    return Query(f"{run}/journal")


def pocket(context: str) -> Query:
    """The facts of a conversation; *context* is the path of its document."""
    return Query(f"{context}/{POCKET}")


def ended_contexts(before: datetime, limit: int) -> Query:
    """Conversations that expired before *before*; active ones have no expiry."""
    return Query(CONTEXTS, where=(("expires_at", "<=", before),), limit=limit)


def session_files(session_hash: str, lower: str, upper: str, limit: int | None = None) -> Query:
    """Files of a session with *lower* <= path < *upper*: a folder, or part of one."""
    return Query(
        FILES,
        where=(("session_hash", "==", session_hash), ("path", ">=", lower), ("path", "<", upper)),
        order_by=(("path", "asc"),),
        limit=limit,
    )
