"""Write the agent's status document: state, CPU, memory, tasks held."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import psutil

from fireswarm import __version__
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.swarm.status import AgentState, AgentStatus, QueueHints
from fireswarm.swarm.swarm import Swarm

HELD_IDS_SHOWN = 20


class Heartbeat:
    """Writes one agent's ``agent_status`` document."""

    def __init__(self, swarm: Swarm, role: str, agent_id: str, message: str = "") -> None:
        self._swarm = swarm
        self._role = role
        self._agent_id = agent_id
        self._message = message
        self._process = psutil.Process()
        self._process.cpu_percent()  # the first call only starts the measurement
        self._started_at: datetime | None = None

    async def write(self, state: AgentState, holding: Sequence[str], faults: int = 0) -> None:
        """Write one heartbeat: state, CPU percent of one core since the last beat, resident bytes, tasks held."""
        now = self._swarm.clock.now()
        self._started_at = self._started_at or now
        with self._process.oneshot():
            cpu, mem = self._process.cpu_percent(), self._process.memory_info().rss
        capacity = self._swarm.settings.worker.concurrency
        status = AgentStatus(
            agent_id=self._agent_id,
            role=self._role,
            session_hash=self._swarm.settings.session,
            status=state,
            message=self._message or self._troubles(faults) or f"{len(holding)} of {capacity} places taken",
            cpu=cpu,
            mem=mem,
            queue_hints=QueueHints(
                running=len(holding),
                capacity=capacity,
                holding=tuple(holding[:HELD_IDS_SHOWN]),
                set_aside=self._swarm.board.aside.count,
                faults=faults,
            ),
            usage=asdict(self._swarm.store.usage),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            created_at=now,
            started_at=self._started_at,
        )
        await self._swarm.heartbeats.beat(status)

    def _troubles(self, faults: int) -> str:
        """Name the last document that was set aside, and unexpected errors; empty if there are none."""
        aside = self._swarm.board.aside
        troubles = [f"{aside.count} documents set aside, last {aside.last}"] if aside.count else []
        if faults:
            troubles.append(f"{faults} unexpected errors, see the log")
        return truncate("; ".join(troubles), MAX_DETAIL_CHARS)
