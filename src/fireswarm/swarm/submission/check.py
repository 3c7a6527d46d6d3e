"""Checks of a task or a stored agent before it is accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fireswarm.capabilities import grants
from fireswarm.contracts.swarm.agent import Agent, AgentLife, AgentSpec
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import InvalidInput
from fireswarm.skills.packs.catalog import Catalog

Roles = Mapping[str, RoleCard]
"""Role cards by name."""


def assign_to_agent(agent: Agent, spec: TaskSpec) -> TaskSpec:
    """Return *spec* as a task for *agent*, with the agent's role, instructions and capabilities.

    A capability of *spec* overrides the agent's. The same objective for another agent, or for a changed one, is another
    task. Raises InvalidInput for an archived agent.
    """
    if agent.status is not AgentLife.ACTIVE:
        raise InvalidInput(f"agent {agent.agent_id} is archived: set its status to active to give it tasks")
    uses = {use.id: use for use in agent.capabilities} | {use.id: use for use in spec.capabilities}
    return spec.model_copy(
        update={
            "assigned_to": agent.role,
            "for_agent": agent.agent_id,
            "instructions": agent.system_prompt,
            "capabilities": tuple(uses.values()),
            "fresh_key": f"{agent.agent_id}.{agent.version}/{spec.fresh_key}",
        }
    )


def check_task(roles: Roles, catalog: Catalog, inline: Collection[str], spec: TaskSpec) -> None:
    """Raise InvalidInput for a role, skill or capability that the role's turn would refuse later.

    *inline* are the names of the engine's own skills.
    """
    card = _card(roles, spec.assigned_to)
    if spec.skill is not None and spec.skill not in catalog.skills and spec.skill not in inline:
        raise InvalidInput(f"there is no skill {spec.skill!r}; leave it out, and the role chooses one")
    grants.check(card, spec.capabilities)


def check_agent(roles: Roles, spec: AgentSpec) -> None:
    """Raise InvalidInput if the agent's role does not exist or may not have its capabilities."""
    grants.check(_card(roles, spec.role), spec.capabilities)


def _card(roles: Roles, role: str) -> RoleCard:
    if role not in roles:
        raise InvalidInput(f"there is no role {role!r}; this swarm has {', '.join(sorted(roles))}")
    return roles[role]
