"""A role card as data: skills, capabilities, limits and the prompt."""

from __future__ import annotations

from pydantic import Field

from fireswarm.contracts.base import Contract, RoleName
from fireswarm.contracts.skills.capability import DEFAULT_CAPABILITIES, CapabilityUse


class RoleLimits(Contract):
    """What one turn of the role may use."""

    turn_timeout_seconds: float = Field(default=600.0, gt=0)


class RoleCard(Contract):
    """One role: its skills (the first is the default), its capabilities in order, and the prompt below.

    ``offers`` are capabilities that a task which another role planned may have beside them.
    """

    name: RoleName
    description: str = Field(min_length=1)
    skills: tuple[str, ...] = Field(min_length=1)
    capabilities: tuple[CapabilityUse, ...] = DEFAULT_CAPABILITIES
    offers: tuple[CapabilityUse, ...] = ()
    limits: RoleLimits = RoleLimits()
    prompt: str = ""
