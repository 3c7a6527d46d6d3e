"""The heartbeat: an ``agent_status`` document of ``mcp_memory``."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Stored, Timestamp

MISSED_BEATS_SECONDS = 75.0
"""Two and a half idle heartbeats: an agent without a heartbeat for longer is shown as gone."""

GONE = "gone"


class AgentState(StrEnum):
    """State of a role process."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    STOPPING = "stopping"
    STOPPED = "stopped"


class QueueHints(Stored):
    """Load of a process: tasks it holds and can hold, ids of held tasks, documents set aside, unexpected errors."""

    running: int = 0
    capacity: int = 0
    holding: tuple[str, ...] = ()
    set_aside: int = 0
    faults: int = 0


class AgentStatus(Stored):
    """One agent's latest heartbeat.

    ``cpu`` is the process's share of one core in percent since the last beat, ``mem`` its resident
    bytes. ``usage`` counts the operations that Firestore billed this agent for since it started.
    """

    type: str = "agent_status"
    agent_id: str
    role: str
    session_hash: str
    status: AgentState
    message: str = ""
    cpu: float = Field(default=0.0, ge=0.0)
    mem: int = Field(default=0, ge=0)
    queue_hints: QueueHints = QueueHints()
    usage: dict[str, int] = Field(default_factory=dict)
    host: str = ""
    pid: int = 0
    version: str = ""
    created_at: Timestamp
    started_at: Timestamp | None = None
    expires_at: Timestamp | None = None

    def state_at(self, now: datetime) -> str:
        """Return the state to show: ``gone`` if the heartbeats stopped without a clean shutdown."""
        silent = (now - self.created_at).total_seconds()
        return GONE if silent > MISSED_BEATS_SECONDS and self.status is not AgentState.STOPPED else self.status.value

    def lives_at(self, now: datetime) -> bool:
        """Return True if the agent is alive: its heartbeats are recent and it has not stopped."""
        return self.state_at(now) not in (GONE, AgentState.STOPPED)
