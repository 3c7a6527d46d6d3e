"""Capabilities and agents on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, field_validator

from fireswarm.api.models.base import MOMENT, JsonMap, Page, Sent, View, said
from fireswarm.contracts.skills.capability import CapabilityStatus, CapabilityUse
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE, MAX_INSTRUCTIONS_CHARS, MAX_USES, AgentLife

AGENT_ID = "0b4a2f0e-2a4e-4c0b-8d0e-6f7a0c1f9a55"
NAME = r"^[a-z][a-z0-9_]{0,49}$"


class Configured(Sent):
    """A capability with settings of its own."""

    id: str = said("which capability", "web_fetch", pattern=NAME)
    config: JsonMap = said("its settings, held to its schema", {"body_seconds": 60}, default_factory=dict)
    prefix: str = said(
        "goes before the names of its tools", "web_", default="", pattern=r"^([a-z][a-z0-9_]{0,19})?$"
    )  # fmt: skip


UseSent = Annotated[str, Field(pattern=NAME, description="a capability by its id")] | Configured
UseView = str | Configured
"""A capability without settings is its bare id."""


def uses_of(sent: Iterable[UseSent]) -> tuple[CapabilityUse, ...]:
    """What was sent, as the contracts have it."""
    plain = (Configured(id=use) if isinstance(use, str) else use for use in sent)
    return tuple(CapabilityUse(id=use.id, config=use.config, prefix=use.prefix) for use in plain)


def uses_shown(uses: Any) -> Any:
    """The contracts' capabilities as they are answered."""
    return [_shown(use) if isinstance(use, CapabilityUse) else use for use in uses]


def _shown(use: CapabilityUse) -> Any:
    return use.model_dump(exclude_defaults=True) if use.config or use.prefix else use.id


class CapabilityView(View):
    """A capability as lists show it."""

    id: str = said("its id", "web_fetch")
    name: str = said("its name", "Web Fetch")
    description: str = said("what it is for", "Fetch content from URLs.")
    status: CapabilityStatus = said("whether it can be used", "available")
    icon: str | None = said("name of an icon", "globe", default=None)
    category: str | None = said("group in a list", "Network", default=None)


class CapabilityList(View):
    """All capabilities."""

    items: tuple[CapabilityView, ...] = said("the capabilities, by id", [])
    total: int = said("how many there are", 11)


class ToolView(View):
    """A tool that a capability brings."""

    name: str = said("what a model calls it", "web_fetch")
    description: str = said("what it does", "Fetch content from a URL.")
    parameters: dict[str, Any] = said("JSON Schema of its input", {"type": "object"})
    idempotent: bool = said("true when it may be called again after a crash", True)
    writes: bool = said("true when a read-only task is refused it", False)


class CapabilityDetail(CapabilityView):
    """A capability with its settings and tools."""

    needs: tuple[str, ...] = said("capabilities it builds on", [], default=())
    settings: dict[str, Any] = said("JSON Schemas of its settings, by name", {"body_seconds": {"type": "number"}})
    operator_keys: tuple[str, ...] = said("settings that only a role card may set", ["allow_hosts"], default=())
    tools: tuple[ToolView, ...] | None = said("its tools; null where they follow from its settings", [], default=None)


class AgentSent(Sent):
    """An agent to store."""

    name: str = said("its name", "Research Assistant", min_length=1, max_length=200)
    role: str = said("role that does its work", "scout", default=DEFAULT_ROLE, pattern=r"^[a-z][a-z0-9-]{0,62}$")
    system_prompt: str = said(
        "said to the model after the role's own prompt",
        "You are a helpful research assistant.",
        default="",
        max_length=MAX_INSTRUCTIONS_CHARS,
    )
    capabilities: tuple[UseSent, ...] = said(
        "beside the role's; the order is their priority",
        ["current_time", {"id": "web_fetch", "config": {"body_seconds": 60}}],
        default=(),
        max_length=MAX_USES,
    )
    status: AgentLife = said("an archived agent gets no tasks", "active", default=AgentLife.ACTIVE)


class AgentChange(Sent):
    """What changes of an agent; what is left out stays."""

    name: str = said("its name", "Research Assistant", default="", min_length=1, max_length=200)
    role: str = said("role that does its work", "scout", default="", pattern=r"^[a-z][a-z0-9-]{0,62}$")
    system_prompt: str = said(
        "said to the model after the role's own prompt", "Be brief.", default="", max_length=MAX_INSTRUCTIONS_CHARS
    )
    capabilities: tuple[UseSent, ...] = said(
        "all of them anew, in order of priority", ["current_time", "web_fetch"], default=(), max_length=MAX_USES
    )
    status: AgentLife = said("an archived agent gets no tasks", "archived", default=AgentLife.ACTIVE)

    def changed(self) -> dict[str, Any]:
        """The fields that were sent."""
        found = {name: getattr(self, name) for name in self.model_fields_set}
        return found | ({"capabilities": uses_of(self.capabilities)} if "capabilities" in found else {})


class AgentView(View):
    """A stored agent."""

    id: str = said("its id", AGENT_ID, validation_alias="agent_id")
    name: str = said("its name", "Research Assistant")
    role: str = said("role that does its work", "scout")
    system_prompt: str = said("said to the model after the role's own prompt", "You are a helpful assistant.")
    capabilities: tuple[UseView, ...] = said(
        "beside the role's, in order of priority; one without settings is its bare id", ["current_time", "test_math"]
    )
    status: AgentLife = said("an archived agent gets no tasks", "active")
    version: int = said("counts its changes; also the ETag", 1)
    created_at: datetime = said("when it was made", MOMENT)
    updated_at: datetime = said("when it changed last", MOMENT)

    @field_validator("capabilities", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return uses_shown(value)


class AgentPage(Page):
    """Stored agents, the newest first."""

    items: tuple[AgentView, ...] = said("the agents of this page", [])
