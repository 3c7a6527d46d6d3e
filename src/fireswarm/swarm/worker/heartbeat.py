"""Write the agent's status document: state, CPU, memory, tasks in progress."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

import psutil

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.swarm.status import MISSED_BEATS, AgentState, AgentStatus, QueueHints
from fireswarm.settings.packaged import __version__
from fireswarm.storage.documents import queries
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.orders import PLACE

HELD_IDS_SHOWN = 20

RESTARTED = "FIRESWARM_RESTARTED"
"""Environment variable in which the supervisor tells a process that it replaces another one, and why."""


class ProcessTree:
    """Load of this process and all its descendants, such as skills and commands."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._cpu_seconds, _ = self._measure()
        self._measured_at = time.monotonic()

    def load(self) -> tuple[float, int]:
        """Return the CPU use since the last call in percent of one core, and the resident memory in bytes now.

        Memory shared between processes is counted for each of them.
        """
        cpu_seconds, memory = self._measure()
        now = time.monotonic()
        elapsed, used = now - self._measured_at, cpu_seconds - self._cpu_seconds
        self._cpu_seconds, self._measured_at = cpu_seconds, now
        return (round(100 * max(0.0, used) / elapsed, 1) if elapsed > 0 else 0.0), memory

    def _measure(self) -> tuple[float, int]:
        """Return the sums of CPU seconds, including ended children, and of resident bytes."""
        cpu_seconds, memory = 0.0, 0
        for process in (self._process, *self._process.children(recursive=True)):
            with contextlib.suppress(psutil.Error), process.oneshot():  # it may end meanwhile
                cpu_seconds += sum(process.cpu_times()[:4])  # user, system, and both of ended children
                memory += process.memory_info().rss
        return cpu_seconds, memory


class Heartbeat:
    """Writes one agent's ``agent_status`` document."""

    def __init__(self, parts: SwarmParts, role: str, agent_id: str, message: str = "") -> None:
        self._parts = parts
        self._role = role
        self._agent_id = agent_id
        self._message = message
        self._tree = ProcessTree()
        self._started_at: datetime | None = None
        self.order = ""
        self.queued = 1  # until it is counted
        self.idle_agents = 0

    async def write(self, state: AgentState, holding: Sequence[str], faults: int = 0) -> None:
        """Write one heartbeat: state, load of the process and its children, tasks in progress, and the role's queue."""
        now = self._parts.clock.now()
        self._started_at = self._started_at or now
        cpu, mem = self._tree.load()
        worker = self._parts.settings.worker
        queued, oldest_seconds = (0, 0.0) if state is AgentState.STOPPED else await self._queue(now)
        self.queued = queued
        hints = QueueHints(
            running=len(holding),
            capacity=worker.concurrency,
            holding=tuple(holding[:HELD_IDS_SHOWN]),
            set_aside=self._parts.board.aside.count,
            faults=faults,
            queued=queued,
            oldest_seconds=oldest_seconds,
        )
        status = AgentStatus(
            agent_id=self._agent_id,
            role=self._role,
            session_hash=self._parts.settings.session,
            status=state,
            message=self.order or self._message or self._troubles(faults) or hints.describe_places(),
            cpu=cpu,
            mem=mem,
            queue_hints=hints,
            beat_seconds=worker.heartbeat_working_seconds if holding else worker.heartbeat_idle_seconds,
            restarted=truncate(os.environ.get(RESTARTED, ""), MAX_DETAIL_CHARS),
            place=os.environ.get(PLACE, ""),
            usage=asdict(self._parts.store.usage),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            created_at=now,
            started_at=self._started_at,
        )
        await self._parts.heartbeats.beat(status)

    async def _queue(self, now: datetime) -> tuple[int, float]:
        """Return the number of tasks that wait for the role, and the age of the oldest in seconds.

        Counts the role's idle agents as well. Costs two or three reads.
        """
        sessions = self._parts.settings.worker.sessions
        recent = now - timedelta(seconds=MISSED_BEATS * self._parts.settings.worker.heartbeat_idle_seconds)
        self.idle_agents = await self._parts.store.count(queries.idle_agents(self._role, recent))
        queued = await self._parts.store.count(queries.queued_tasks(self._role, None, sessions))
        if not queued:
            return 0, 0.0
        oldest = await self._parts.store.query(queries.oldest_queued(self._role, sessions))
        created_at = (oldest[0].data or {}).get("created_at") if oldest else None
        seconds = (now - created_at).total_seconds() if isinstance(created_at, datetime) else 0.0
        return queued, max(0.0, round(seconds, 1))

    def _troubles(self, faults: int) -> str:
        """Describe the last document that was set aside, and unexpected errors; "" if there are none."""
        aside = self._parts.board.aside
        troubles = [f"{count_noun(aside.count, 'document')} set aside, last {aside.last}"] if aside.count else []
        if faults:
            troubles.append(f"{count_noun(faults, 'unexpected error')}, see the log")
        return truncate("; ".join(troubles), MAX_DETAIL_CHARS)
