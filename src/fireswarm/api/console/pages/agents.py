"""The role processes by their heartbeats, and the roles."""

from __future__ import annotations

from datetime import timedelta

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.status import AgentStatus

RECENT = timedelta(hours=1)
READ = 100


async def find_living(swarm: Swarm) -> list[AgentStatus]:
    """Return the agents that are alive or ended within the last hour, newest heartbeat first."""
    now = swarm.parts.clock.now()
    return [agent for agent in await swarm.parts.heartbeats.latest(READ, since=now - RECENT)]


async def show(visit: Visit) -> Shown:
    """Make the page."""
    found = await find_living(visit.swarm)
    now = visit.swarm.parts.clock.now()
    roles = sorted(visit.swarm.parts.roles.values(), key=lambda card: card.name)
    states = {agent.agent_id: agent.state_at(now) for agent in found}
    return Shown("agents.html", {"agents": found, "states": states, "roles": roles})
