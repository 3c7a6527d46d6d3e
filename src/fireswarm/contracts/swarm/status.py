"""The heartbeat: an ``agent_status`` document of ``mcp_memory``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Stored, Timestamp

MISSED_BEATS = 2.5
"""Number of missed heartbeat intervals after which an agent is shown as gone."""

LATE_BEATS = 1.2
"""Number of heartbeat intervals after which an agent is shown as silent: it hangs, or has just died."""

GONE = "gone"
SILENT = "silent"


class AgentState(StrEnum):
    """State of a role process."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    STOPPING = "stopping"
    STOPPED = "stopped"


class QueueHints(Stored):
    """Load of a process: number and limit of held tasks, their ids, documents set aside, unexpected errors.

    ``queued`` is the number of tasks that wait for the role, ``oldest_seconds`` the age of the oldest.
    """

    running: int = 0
    capacity: int = 0
    holding: tuple[str, ...] = ()
    set_aside: int = 0
    faults: int = 0
    queued: int = 0
    oldest_seconds: float = 0.0

    def describe_places(self) -> str:
        """Return in words how many places for tasks are taken."""
        return f"{self.running} of {self.capacity} places taken"


class AgentStatus(Stored):
    """One agent's latest heartbeat.

    ``cpu`` is the load of the process and its children in percent of one core since the last beat, ``mem`` their
    resident bytes. The next beat follows after ``beat_seconds``. ``usage`` counts the operations that Firestore billed
    for this agent since its start. ``restarted`` says why the process replaced another one, "" for the first.
    ``place`` names its place in its fleet, which a process that replaces it has too; "" without a supervisor.
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
    beat_seconds: float = Field(default=30.0, gt=0)
    usage: dict[str, int] = Field(default_factory=dict)
    host: str = ""
    pid: int = 0
    version: str = ""
    restarted: str = ""
    place: str = ""
    created_at: Timestamp
    started_at: Timestamp | None = None
    expires_at: Timestamp | None = None

    def with_held(self, task_ids: Sequence[str]) -> AgentStatus:
        """Return the status of an agent that holds these tasks now: at work with some, idle without."""
        if self.status not in (AgentState.IDLE, AgentState.WORKING):
            return self
        hints = self.queue_hints.model_copy(update={"holding": tuple(task_ids), "running": len(task_ids)})
        status = AgentState.WORKING if task_ids else AgentState.IDLE
        says = hints.describe_places() if self.message == self.queue_hints.describe_places() else self.message
        return self.model_copy(update={"status": status, "queue_hints": hints, "message": says})

    def state_at(self, now: datetime) -> str:
        """Return the state to show.

        ``gone`` if the heartbeats stopped without a clean shutdown, ``silent`` if one is late.
        """
        late = (now - self.created_at).total_seconds() / self.beat_seconds
        if self.status is AgentState.STOPPED or late <= LATE_BEATS:
            return self.status.value
        return GONE if late > MISSED_BEATS else SILENT

    def lives_at(self, now: datetime) -> bool:
        """Return True if the agent is alive: its heartbeats are recent and it has not stopped."""
        return self.state_at(now) not in (GONE, AgentState.STOPPED)


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """An agent as it is shown now: its heartbeat, its state, and in words how it ended, "" if it did not or stopped.

    ``successor`` is the process that its supervisor started in its place, if any.
    """

    status: AgentStatus
    state: str
    end: str = ""
    successor: AgentStatus | None = None


def see_agents(agents: Iterable[AgentStatus], now: datetime) -> list[SeenAgent]:
    """Return each agent as it is shown, in the same order.

    One whose place another one has is gone, also while its last heartbeat is new.
    """
    agents = list(agents)
    successors = _find_successors(agents)
    return [_see(agent, successors.get(agent.agent_id), now) for agent in agents]


def _see(agent: AgentStatus, successor: AgentStatus | None, now: datetime) -> SeenAgent:
    state = agent.state_at(now)
    if successor is not None:
        state = GONE if agent.lives_at(now) else state
        return SeenAgent(agent, state, successor.restarted or f"{successor.agent_id} has its place", successor)
    if state != GONE:
        return SeenAgent(agent, state)
    last = f"{agent.created_at:%Y-%m-%d %H:%M:%S} UTC"
    return SeenAgent(
        agent,
        state,
        f"nothing says how: its last heartbeat was at {last}, and no process took its place. It was killed together "
        "with its supervisor, or its machine stopped or lost its network; its log and the system's have more",
    )


def _find_successors(agents: Iterable[AgentStatus]) -> dict[str, AgentStatus]:
    """Return, by the id of each process that has ended, the one that its supervisor started in its place."""
    last: dict[str, AgentStatus] = {}
    successors: dict[str, AgentStatus] = {}
    for agent in sorted(agents, key=lambda agent: (agent.started_at or agent.created_at, agent.agent_id)):
        before = last.get(agent.place) if agent.place else None
        if before is not None and before.agent_id != agent.agent_id:
            successors[before.agent_id] = agent
        last[agent.place] = agent
    return successors
