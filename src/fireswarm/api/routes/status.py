"""``/v1/status``: task counts, role processes and roles of the swarm."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter

from fireswarm.api.models.records import RoleOut, StatusOut
from fireswarm.api.session import CurrentSession
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.settings.packaged import __version__
from fireswarm.storage.documents import queries

router = APIRouter(prefix="/v1/status", tags=["status"])


@router.get("", response_model=StatusOut)
async def get_status(given: CurrentSession) -> Any:
    """Show tasks by status, role processes by state, and the roles. Costs one read per status and per process."""
    swarm, now = given.swarm, given.swarm.parts.clock.now()
    counts = {
        status.value: await swarm.parts.store.count(queries.tasks_in(given.session, status)) for status in TaskStatus
    }
    states = Counter(status.state_at(now) for status in await swarm.parts.heartbeats.latest())
    roles = [
        RoleOut(name=card.name, description=card.description, capabilities=tuple(use.id for use in card.capabilities))
        for _, card in sorted(swarm.parts.roles.items())
    ]
    return StatusOut(
        version=__version__,
        session=given.session,
        now=now,
        tasks=counts,
        agents=dict(states),
        roles=tuple(roles),
        reads=swarm.parts.store.usage.reads,
        writes=swarm.parts.store.usage.writes,
    )
