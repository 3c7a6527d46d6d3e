"""Check that a role exists and may have the capabilities of a task or a stored agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fireswarm.capabilities import grants
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import InvalidInput

Roles = Mapping[str, RoleCard]
"""Role cards by name."""


def check_role(roles: Roles, role: str, uses: Sequence[CapabilityUse]) -> None:
    """Raise InvalidInput for an unknown role, and for capabilities that the role's turn would refuse later."""
    if role not in roles:
        raise InvalidInput(f"there is no role {role!r}; this swarm has {', '.join(sorted(roles))}")
    grants.check(roles[role], uses)
