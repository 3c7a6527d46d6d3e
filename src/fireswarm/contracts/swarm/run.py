"""The run record: one document of ``agent_runs`` for each lease epoch of a task."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from fireswarm.contracts.base import JsonObject, Stored, Timestamp
from fireswarm.contracts.skills.artifact import Artifact

MAX_RUN_EVENTS = 100
"""Maximum number of events on the run document.

Older ones move to its ``journal`` subcollection, so that the document stays well below Firestore's 1 MiB.
"""

MAX_INLINE_PAYLOAD_BYTES = 16 * 1024
"""Size above which event payloads and artifact values are stored in the blob store and referenced by URI."""


class RunStatus(StrEnum):
    """The five run statuses of the original contract."""

    STARTED = "started"
    PROGRESS = "progress"
    COMPLETED = "completed"
    ERROR = "error"
    TIMEOUT = "timeout"


class RunEvent(Stored):
    """One event of a run: time, type, payload."""

    ts: Timestamp
    type: str
    payload: JsonObject = Field(default_factory=dict)


class RunDocument(Stored):
    """A document of ``agent_runs``.

    ``ended_at`` of a run that its agent lost is the last moment at which the agent is known to have worked on it;
    ``noticed_at`` is the time at which somebody else ended it.
    """

    run_id: str
    task_id: str
    agent_id: str
    role: str
    session_hash: str
    epoch: int
    turn: int = 0
    status: RunStatus
    summary: str = ""
    progress: float = Field(default=0.0, ge=0.0, le=1.0)
    events: tuple[RunEvent, ...] = ()
    events_total: int = 0
    artifacts: tuple[Artifact, ...] = ()
    idempotency_key: str = ""
    chain_id: str = ""
    error: str | None = None
    usage: dict[str, Any] = Field(default_factory=dict)
    live: str = ""
    schema_version: int = 1
    started_at: Timestamp
    ended_at: Timestamp | None = None
    noticed_at: Timestamp | None = None
