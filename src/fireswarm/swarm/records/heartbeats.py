"""Heartbeats: one `agent_status` document per agent in `mcp_memory`, overwritten by each beat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation, is_document_id
from fireswarm.contracts.ports import SERVER_TIME, Clock, Merge, Snapshot, Store
from fireswarm.contracts.swarm.status import AgentStatus
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import MEMORY
from fireswarm.storage.documents.read import parse_readable

STATUS_TTL_SECONDS = 24 * 3600.0
"""A heartbeat expires a day after the last beat, so that yesterday's crash can still be examined."""

LOOKED_AT = 5
"""Number of heartbeats of a role that are read to find a running agent."""


MAX_RUNNING = 500
"""Maximum number of running tasks whose leases are read to show what agents hold."""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """Writes and lists the heartbeats of a store's agents."""

    store: Store
    clock: Clock

    async def beat(self, status: AgentStatus) -> None:
        """Write a heartbeat: one document per agent, overwritten by the next beat."""
        keep = self.clock.now() + timedelta(seconds=STATUS_TTL_SECONDS)
        fields = plain(status) | {"created_at": SERVER_TIME, "expires_at": keep}
        await self.store.commit([Merge(f"{MEMORY}/status-{status.agent_id}", fields)])

    async def read_reported(self, limit: int = 200, *, since: datetime | None = None) -> list[AgentStatus]:
        """Return up to *limit* heartbeats as the agents wrote them, newest first; with *since*, those from then on."""
        return parse_readable(await self.store.query(queries.heartbeats(limit, since=since)), parse_status)

    async def latest(self, limit: int = 200, *, since: datetime | None = None) -> list[AgentStatus]:
        """Return up to *limit* heartbeats, one per agent, newest first; with *since*, only those from then on.

        A heartbeat may be half a minute old; what an agent holds now is read from the leases of the running tasks.
        """
        statuses = await self.read_reported(limit, since=since)
        held: dict[str, list[str]] = {}
        if statuses:
            for snapshot in await self.store.query(queries.with_status(TaskStatus.IN_PROGRESS.value, MAX_RUNNING)):
                lease: Any = (snapshot.data or {}).get("lease")
                if isinstance(lease, dict):
                    held.setdefault(str(cast("dict[str, Any]", lease).get("owner_agent_id")), []).append(snapshot.id)
        return [status.with_held(held.get(status.agent_id, ())) for status in statuses]

    async def find(self, agent_id: str) -> AgentStatus | None:
        """Return the heartbeat of one agent; None if there is none that can be read."""
        if not is_document_id(f"status-{agent_id}"):
            return None
        snapshot = await self.store.get(f"{MEMORY}/status-{agent_id}")
        found = parse_readable([snapshot] if snapshot.data is not None else [], parse_status)
        return found[0] if found else None

    async def lives(self, role: str) -> bool:
        """Return True if one of the role's last `LOOKED_AT` heartbeats is from a running agent."""
        snapshots = await self.store.query(queries.heartbeats(LOOKED_AT, role=role))
        return any(status.lives_at(self.clock.now()) for status in parse_readable(snapshots, parse_status))


def parse_status(snapshot: Snapshot) -> AgentStatus:
    """Parse a heartbeat. Raises InvalidInput with the faulty field."""
    try:
        return AgentStatus.model_validate(snapshot.data)
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not an agent's status: {explain_validation(error)}") from error
