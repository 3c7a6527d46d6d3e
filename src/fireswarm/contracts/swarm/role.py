"""The data of a role card: skills, capabilities, limits and the prompt."""

from __future__ import annotations

from pydantic import Field

from fireswarm.contracts.base import Contract, RoleName
from fireswarm.contracts.skills.capability import DEFAULT_CAPABILITIES, CapabilityUse
from fireswarm.contracts.skills.permissions import StricterPermissions


class RoleLimits(Contract):
    """Limits of one turn of the role."""

    turn_timeout_seconds: float = Field(default=600.0, gt=0)


class RoleCard(Contract):
    """One role: its skills (the first is the default), its capabilities in order, and its prompt.

    A role without skills needs a model. ``offers`` are additional capabilities that a task planned by another role may
    have. ``permissions`` add to the rules in the settings.
    """

    name: RoleName
    description: str = Field(min_length=1)
    skills: tuple[str, ...] = ()
    capabilities: tuple[CapabilityUse, ...] = DEFAULT_CAPABILITIES
    offers: tuple[CapabilityUse, ...] = ()
    limits: RoleLimits = RoleLimits()
    permissions: StricterPermissions = StricterPermissions()
    prompt: str = ""
