"""Public data of a capability: its id, its availability, and its use by an agent."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from fireswarm.contracts.base import Contract, JsonObject

CapabilityId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
"""Lowercase letters, digits and underscores, at most 50."""


class CapabilityStatus(StrEnum):
    """Availability of a capability."""

    AVAILABLE = "available"
    COMING_SOON = "coming_soon"
    DEPRECATED = "deprecated"


class CapabilityInfo(Contract):
    """A capability in a list."""

    id: CapabilityId
    name: str
    description: str
    status: CapabilityStatus
    icon: str | None = None
    category: str | None = None


class CapabilityUse(Contract):
    """One capability of an agent, role or task; an id alone means default settings.

    ``config`` is validated by the capability's schema. ``prefix`` is prepended to the names of its tools, in case two
    capabilities have tools with the same name.
    """

    id: CapabilityId
    config: JsonObject = Field(default_factory=dict)
    prefix: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9_]{0,19})?$")] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_id(cls, value: Any) -> Any:
        return {"id": value} if isinstance(value, str) else value


DEFAULT_CAPABILITIES = (CapabilityUse(id="workspace"),)
"""Capabilities of an agent or role that lists none: it may read the folder of its task."""
