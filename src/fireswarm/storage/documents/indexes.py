"""Composite indexes, time-to-live fields and unindexed fields, the source of `firestore.indexes.json`."""

from __future__ import annotations

from typing import Literal

from fireswarm.storage.documents.paths import (
    AGENTS,
    ANSWERED,
    CONTEXTS,
    FILES,
    JOURNAL,
    KEYS,
    MAILBOX,
    MEMORY,
    NOTICES,
    POCKET,
    REQUESTS,
    RUNS,
    SCHEDULES,
    TASKS,
    VECTORS,
    VERSIONS,
)

Direction = Literal["asc", "desc"]


COMPOSITES: dict[str, tuple[tuple[tuple[str, Direction], ...], ...]] = {
    TASKS: (
        (("assigned_to", "asc"), ("status", "asc"), ("priority", "desc"), ("deadline", "asc"), ("created_at", "asc")),
        (("assigned_to", "asc"), ("status", "asc"), ("priority", "asc"), ("task_id", "asc")),
        (("assigned_to", "asc"), ("status", "asc"), ("task_id", "asc")),
        (("session_hash", "asc"), ("priority", "desc"), ("deadline", "asc"), ("created_at", "asc")),
        (("session_hash", "asc"), ("priority", "asc"), ("task_id", "asc")),
        (("assigned_to", "asc"), ("status", "asc"), ("created_at", "asc")),
        (("session_hash", "asc"), ("created_at", "asc")),
        (("assigned_to", "asc"), ("sweep_at", "asc")),
        (("assigned_to", "asc"), ("status", "asc"), ("lease.expires_at", "asc")),
        (("status", "asc"), ("updated_at", "desc")),
        (("status_reason", "asc"), ("updated_at", "desc")),
        (("assigned_to", "asc"), ("updated_at", "desc")),
        (("session_hash", "asc"), ("updated_at", "desc")),
        (("trace.step", "asc"), ("updated_at", "desc")),
    ),
    RUNS: (
        (("status", "asc"), ("started_at", "desc")),
        (("role", "asc"), ("started_at", "desc")),
        (("session_hash", "asc"), ("started_at", "desc")),
        (("task_id", "asc"), ("started_at", "desc")),
        (("agent_id", "asc"), ("started_at", "desc")),
    ),
    MAILBOX: (
        (("status", "asc"), ("created_at", "desc")),
        (("to_agent_id", "asc"), ("created_at", "desc")),
        (("session_hash", "asc"), ("created_at", "desc")),
        (("task_id", "asc"), ("created_at", "desc")),
    ),
    MEMORY: (
        (("type", "asc"), ("created_at", "desc")),
        (("session_hash", "asc"), ("created_at", "desc")),
        (("project", "asc"), ("created_at", "desc")),
        (("bucket", "asc"), ("created_at", "desc")),
        (("role", "asc"), ("created_at", "desc")),
        (("status", "asc"), ("created_at", "desc")),
    ),
    FILES: ((("session_hash", "asc"), ("path", "asc")),),
    NOTICES: ((("role", "asc"), ("state", "asc"), ("receiver", "asc"), ("not_before", "asc")),),
    AGENTS: ((("session_hash", "asc"), ("created_at", "desc")), (("status", "asc"), ("created_at", "desc"))),
}
"""Composite indexes by collection.

For queries that filter on several of their leading fields, the query planner merges indexes that end with the same
order.
"""


VECTOR_DIMENSIONS = 256
"""Numbers of a vector: an index has one size, so all embedding models are asked for this one."""

VECTOR_INDEXES: dict[str, tuple[tuple[str, ...], ...]] = {
    VECTORS: (("session_hash", "model", "vector"), ("project", "model", "vector")),
}
"""Indexes for vector searches by collection: the filters, then the field of the vector."""

TTL_FIELDS: dict[str, str] = {
    MAILBOX: "expires_at",
    MEMORY: "expires_at",
    CONTEXTS: "expires_at",
    POCKET: "expires_at",
    ANSWERED: "expires_at",
    REQUESTS: "expires_at",
    NOTICES: "expires_at",
}
"""Fields with a TTL policy: Firestore usually deletes the documents within a day after that time."""


UNINDEXED: dict[str, tuple[str, ...]] = {
    TASKS: (
        "capabilities",
        "context",
        "result",
        "answers",
        "answered",
        "summary",
        "objective",
        "questions",
        "ended_at",
        "not_before",
        "created_at",
        "instructions",
    ),
    RUNS: ("events", "artifacts", "summary", "usage", "live", "ended_at", "noticed_at", "error"),
    JOURNAL: ("events",),
    KEYS: ("session_hash", "assigned_to", "created_at"),
    MAILBOX: ("payload", "expires_at"),
    MEMORY: ("value", "text", "evidence", "message", "queue_hints", "expires_at", "started_at"),
    VERSIONS: ("value", "text", "evidence", "created_at"),
    VECTORS: ("vector", "of"),
    CONTEXTS: ("events", "summary", "inputs", "input_request", "messages", "resume_key", "created_at"),
    POCKET: ("value", "at", "expires_at"),
    ANSWERED: ("response", "at", "expires_at"),
    FILES: ("content", "encoding", "size_bytes", "version", "folder", "name", "created_at", "updated_at"),
    AGENTS: ("name", "system_prompt", "capabilities", "version", "updated_at"),
    NOTICES: ("objective", "text", "asks", "error", "created_at", "expires_at", "attempts"),
    SCHEDULES: ("task", "note", "timed_by", "next_at", "last_at", "last_task_id", "created_at", "updated_at"),
    REQUESTS: ("content", "headers", "fingerprint", "claimed_at", "expires_at", "status"),
}
"""Exempt from automatic single-field indexes: large, or sequential and never queried alone (a collection
with a sequential indexed field takes about 500 writes/s)."""
