"""Capabilities and agents on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, field_validator

from fireswarm.api.models.base import MOMENT, JsonMap, Page, RequestModel, ResponseModel, documented
from fireswarm.contracts.skills.capability import CapabilityStatus, CapabilityUse
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE, MAX_INSTRUCTIONS_CHARS, MAX_USES, AgentLife

AGENT_ID = "0b4a2f0e-2a4e-4c0b-8d0e-6f7a0c1f9a55"
NAME = r"^[a-z][a-z0-9_]{0,49}$"


class Configured(RequestModel):
    """A capability with settings of its own."""

    id: str = documented("which capability", "web_fetch", pattern=NAME)
    config: JsonMap = documented("its settings, held to its schema", {"body_seconds": 60}, default_factory=dict)
    prefix: str = documented(
        "goes before the names of its tools", "web_", default="", pattern=r"^([a-z][a-z0-9_]{0,19})?$"
    )  # fmt: skip


UseSent = Annotated[str, Field(pattern=NAME, description="a capability by its id")] | Configured
UseView = str | Configured
"""A capability without settings is its bare id."""


def uses_of(sent: Iterable[UseSent]) -> tuple[CapabilityUse, ...]:
    """What was sent, as the contracts have it."""
    plain = (Configured(id=use) if isinstance(use, str) else use for use in sent)
    return tuple(CapabilityUse(id=use.id, config=use.config, prefix=use.prefix) for use in plain)


def dump_uses(uses: Any) -> Any:
    """The contracts' capabilities as they are answered."""
    return [_dump_use(use) if isinstance(use, CapabilityUse) else use for use in uses]


def _dump_use(use: CapabilityUse) -> Any:
    return use.model_dump(exclude_defaults=True) if use.config or use.prefix else use.id


class CapabilityOut(ResponseModel):
    """A capability as lists show it."""

    id: str = documented("its id", "web_fetch")
    name: str = documented("its name", "Web Fetch")
    description: str = documented("what it is for", "Fetch content from URLs.")
    status: CapabilityStatus = documented("whether it can be used", "available")
    icon: str | None = documented("name of an icon", "globe", default=None)
    category: str | None = documented("group in a list", "Network", default=None)


class CapabilityList(ResponseModel):
    """All capabilities."""

    items: tuple[CapabilityOut, ...] = documented("the capabilities, by id", [])
    total: int = documented("how many there are", 11)


class ToolOut(ResponseModel):
    """A tool that a capability brings."""

    name: str = documented("what a model calls it", "web_fetch")
    description: str = documented("what it does", "Fetch content from a URL.")
    parameters: dict[str, Any] = documented("JSON Schema of its input", {"type": "object"})
    idempotent: bool = documented("true when it may be called again after a crash", True)
    writes: bool = documented("true when a read-only task is refused it", False)


class CapabilityDetail(CapabilityOut):
    """A capability with its settings and tools."""

    needs: tuple[str, ...] = documented("capabilities it builds on", [], default=())
    settings: dict[str, Any] = documented("JSON Schemas of its settings, by name", {"body_seconds": {"type": "number"}})
    operator_keys: tuple[str, ...] = documented("settings that only a role card may set", ["allow_hosts"], default=())
    tools: tuple[ToolOut, ...] | None = documented(
        "its tools; null where they follow from its settings", [], default=None
    )


class AgentCreate(RequestModel):
    """An agent to store."""

    name: str = documented("its name", "Research Assistant", min_length=1, max_length=200)
    role: str = documented("role that does its work", "scout", default=DEFAULT_ROLE, pattern=r"^[a-z][a-z0-9-]{0,62}$")
    system_prompt: str = documented(
        "said to the model after the role's own prompt",
        "You are a helpful research assistant.",
        default="",
        max_length=MAX_INSTRUCTIONS_CHARS,
    )
    capabilities: tuple[UseSent, ...] = documented(
        "beside the role's; the order is their priority",
        ["current_time", {"id": "web_fetch", "config": {"body_seconds": 60}}],
        default=(),
        max_length=MAX_USES,
    )
    status: AgentLife = documented("an archived agent gets no tasks", "active", default=AgentLife.ACTIVE)


class AgentChange(RequestModel):
    """What changes of an agent; what is left out stays."""

    name: str = documented("its name", "Research Assistant", default="", min_length=1, max_length=200)
    role: str = documented("role that does its work", "scout", default="", pattern=r"^[a-z][a-z0-9-]{0,62}$")
    system_prompt: str = documented(
        "said to the model after the role's own prompt", "Be brief.", default="", max_length=MAX_INSTRUCTIONS_CHARS
    )
    capabilities: tuple[UseSent, ...] = documented(
        "all of them anew, in order of priority", ["current_time", "web_fetch"], default=(), max_length=MAX_USES
    )
    status: AgentLife = documented("an archived agent gets no tasks", "archived", default=AgentLife.ACTIVE)

    def sent_fields(self) -> dict[str, Any]:
        """The fields that were sent."""
        found = {name: getattr(self, name) for name in self.model_fields_set}
        return found | ({"capabilities": uses_of(self.capabilities)} if "capabilities" in found else {})


class AgentOut(ResponseModel):
    """A stored agent."""

    id: str = documented("its id", AGENT_ID, validation_alias="agent_id")
    name: str = documented("its name", "Research Assistant")
    role: str = documented("role that does its work", "scout")
    system_prompt: str = documented("said to the model after the role's own prompt", "You are a helpful assistant.")
    capabilities: tuple[UseView, ...] = documented(
        "beside the role's, in order of priority; one without settings is its bare id", ["current_time", "test_math"]
    )
    status: AgentLife = documented("an archived agent gets no tasks", "active")
    version: int = documented("counts its changes; also the ETag", 1)
    created_at: datetime = documented("when it was made", MOMENT)
    updated_at: datetime = documented("when it changed last", MOMENT)

    @field_validator("capabilities", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return dump_uses(value)


class AgentPage(Page):
    """Stored agents, the newest first."""

    items: tuple[AgentOut, ...] = documented("the agents of this page", [])
