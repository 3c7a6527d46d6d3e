"""What a capability is from outside: who it is, whether it can be used, and how an agent asks for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from fireswarm.contracts.base import Contract, JsonObject

CapabilityId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
"""Lowercase letters, digits and underscores, at most 50."""


class CapabilityStatus(StrEnum):
    """Whether a capability can be used."""

    AVAILABLE = "available"
    COMING_SOON = "coming_soon"
    DEPRECATED = "deprecated"


class CapabilityInfo(Contract):
    """A capability as lists show it."""

    id: CapabilityId
    name: str
    description: str
    status: CapabilityStatus
    icon: str | None = None
    category: str | None = None


class CapabilityUse(Contract):
    """One capability of an agent, role or task; a bare id stands for one without configuration.

    ``config`` is validated by the capability's own schema. ``prefix`` goes before the names of its tools, where two
    capabilities bring tools of one name.
    """

    id: CapabilityId
    config: JsonObject = Field(default_factory=dict)
    prefix: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9_]{0,19})?$")] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_id(cls, value: Any) -> Any:
        return {"id": value} if isinstance(value, str) else value


DEFAULT_CAPABILITIES = (CapabilityUse(id="workspace"),)
"""What an agent or role has that names no capabilities: it may look at the folder its task is about."""
