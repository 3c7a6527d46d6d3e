"""The data of a role card: skills, capabilities, limits and the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, model_validator

from fireswarm.contracts.base import Contract, RoleName, check_no_own_name
from fireswarm.contracts.model_choice import ModelChoice
from fireswarm.contracts.skills.capability import DEFAULT_CAPABILITIES, CapabilityUse
from fireswarm.contracts.skills.permissions import StricterPermissions

FORMER_LIMIT = "turn_timeout_seconds"
"""Name of ``idle_seconds`` when it limited a whole turn; cards that have it are still read."""


class RoleLimits(Contract):
    """Limits of a turn of the role. A turn that makes progress has no time limit but the task's deadline."""

    idle_seconds: float = Field(default=600.0, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _rename_former_limit(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or FORMER_LIMIT not in given:
            return given
        limits = dict(cast("Mapping[str, Any]", given))
        seconds = limits.pop(FORMER_LIMIT)
        return {"idle_seconds": seconds} | limits


class RoleCard(ModelChoice):
    """One role: its skills (the first is the default), its capabilities in order, its model, and its prompt.

    A role without skills needs a model. ``offers`` are additional capabilities that a task planned by another role may
    have. ``permissions`` add to the rules in the settings. With ``trusted``, the code of ``skills`` runs without
    confinement, except in ``read_only`` tasks and where a rule denies files.
    """

    name: Annotated[RoleName, AfterValidator(check_no_own_name)]
    description: str = Field(min_length=1)
    skills: tuple[str, ...] = ()
    capabilities: tuple[CapabilityUse, ...] = DEFAULT_CAPABILITIES
    offers: tuple[CapabilityUse, ...] = ()
    limits: RoleLimits = RoleLimits()
    permissions: StricterPermissions = StricterPermissions()
    trusted: bool = False
    prompt: str = ""

    @property
    def trusted_skills(self) -> frozenset[str]:
        """The names of the skills whose code runs without confinement."""
        return frozenset(self.skills if self.trusted else ())
