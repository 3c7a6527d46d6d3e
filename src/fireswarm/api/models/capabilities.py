"""API models of capabilities and stored agents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator

from fireswarm.api.models.base import MOMENT, JsonMap, Page, RequestModel, ResponseModel, documented
from fireswarm.contracts.skills.capability import CapabilityStatus, CapabilityUse
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE, MAX_INSTRUCTIONS_CHARS, MAX_USES, AgentLife

AGENT_ID = "0b4a2f0e-2a4e-4c0b-8d0e-6f7a0c1f9a55"
NAME = r"^[a-z][a-z0-9_]{0,49}$"


class Configured(RequestModel):
    """A capability with settings."""

    id: str = documented("id of the capability", "web_fetch", pattern=NAME)
    config: JsonMap = documented(
        "settings, validated against the capability's schema", {"body_seconds": 60}, default_factory=dict
    )
    prefix: str = documented(
        "prefix for the names of its tools", "web_", default="", pattern=r"^([a-z][a-z0-9_]{0,19})?$"
    )  # fmt: skip


UseSent = Annotated[str, Field(pattern=NAME, description="id of a capability")] | Configured
UseView = str | Configured
"""A capability without settings is given by its id alone."""


def uses_of(sent: Iterable[UseSent]) -> tuple[CapabilityUse, ...]:
    """Convert the capabilities of a request to contract objects."""
    plain = (Configured(id=use) if isinstance(use, str) else use for use in sent)
    return tuple(CapabilityUse(id=use.id, config=use.config, prefix=use.prefix) for use in plain)


def dump_uses(uses: Any) -> Any:
    """Convert contract capabilities to their response form."""
    return [_dump_use(use) if isinstance(use, CapabilityUse) else use for use in uses]


def _dump_use(use: CapabilityUse) -> Any:
    return use.model_dump(exclude_defaults=True) if use.config or use.prefix else use.id


class CapabilityOut(ResponseModel):
    """A capability in a list."""

    id: str = documented("capability id", "web_fetch")
    name: str = documented("display name", "Web Fetch")
    description: str = documented("purpose of the capability", "Fetch content from URLs.")
    status: CapabilityStatus = documented("availability", "available")
    icon: str | None = documented("icon name", "globe", default=None)
    category: str | None = documented("category for grouping in lists", "Network", default=None)


class CapabilityList(ResponseModel):
    """All capabilities."""

    items: tuple[CapabilityOut, ...] = documented("capabilities, sorted by id", [])
    total: int = documented("number of capabilities", 11)


class ToolOut(ResponseModel):
    """A tool of a capability."""

    name: str = documented("tool name as the model calls it", "web_fetch")
    description: str = documented("purpose of the tool", "Fetch content from a URL.")
    parameters: dict[str, Any] = documented("JSON Schema of the input", {"type": "object"})
    idempotent: bool = documented("true if it may be called again after a crash", True)
    writes: bool = documented("true if read-only tasks may not call it", False)


class CapabilityDetail(CapabilityOut):
    """A capability with its settings and tools."""

    needs: tuple[str, ...] = documented("ids of the capabilities it depends on", [], default=())
    settings: dict[str, Any] = documented(
        "JSON Schemas of the settings, by name", {"body_seconds": {"type": "number"}}
    )  # fmt: skip
    operator_keys: tuple[str, ...] = documented("settings that only a role card may set", ["allow_hosts"], default=())
    tools: tuple[ToolOut, ...] | None = documented(
        "tools of the capability; null if they depend on its settings", [], default=None
    )


class AgentCreate(RequestModel):
    """An agent to store."""

    name: str = documented("display name", "Research Assistant", min_length=1, max_length=200)
    role: str = documented(
        "role that executes the agent's tasks", "scout", default=DEFAULT_ROLE, pattern=r"^[a-z][a-z0-9-]{0,62}$"
    )
    system_prompt: str = documented(
        "instructions appended to the role's prompt",
        "You are a helpful research assistant.",
        default="",
        max_length=MAX_INSTRUCTIONS_CHARS,
    )
    capabilities: tuple[UseSent, ...] = documented(
        "capabilities in addition to the role's, highest priority first",
        ["current_time", {"id": "web_fetch", "config": {"body_seconds": 60}}],
        default=(),
        max_length=MAX_USES,
    )
    status: AgentLife = documented("archived agents get no new tasks", "active", default=AgentLife.ACTIVE)


def _drop_defaults(schema: dict[str, Any]) -> None:
    """Remove the defaults of a schema: a generated client would send them for fields that its caller omits."""
    for field in schema["properties"].values():
        field.pop("default", None)


class AgentChange(RequestModel):
    """Changes to an agent. Omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=_drop_defaults)

    name: str = documented("display name", "Research Assistant", default="", min_length=1, max_length=200)
    role: str = documented(
        "role that executes the agent's tasks", "scout", default="", pattern=r"^[a-z][a-z0-9-]{0,62}$"
    )
    system_prompt: str = documented(
        "instructions appended to the role's prompt", "Be brief.", default="", max_length=MAX_INSTRUCTIONS_CHARS
    )
    capabilities: tuple[UseSent, ...] = documented(
        "replaces the whole list, highest priority first",
        ["current_time", "web_fetch"],
        default=(),
        max_length=MAX_USES,
    )
    status: AgentLife = documented("archived agents get no new tasks", "archived", default=AgentLife.ACTIVE)

    def sent_fields(self) -> dict[str, Any]:
        """Return the fields that the request contains."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return fields | ({"capabilities": uses_of(self.capabilities)} if "capabilities" in fields else {})


class AgentOut(ResponseModel):
    """A stored agent."""

    id: str = documented("agent id", AGENT_ID, validation_alias="agent_id")
    name: str = documented("display name", "Research Assistant")
    role: str = documented("role that executes the agent's tasks", "scout")
    system_prompt: str = documented("instructions appended to the role's prompt", "You are a helpful assistant.")
    capabilities: tuple[UseView, ...] = documented(
        "capabilities in addition to the role's, highest priority first; an id alone means default settings",
        ["current_time", "test_math"],
    )
    status: AgentLife = documented("archived agents get no new tasks", "active")
    version: int = documented("version, incremented by each change; also the ETag", 1)
    created_at: datetime = documented("time of creation", MOMENT)
    updated_at: datetime = documented("time of the last change", MOMENT)

    @field_validator("capabilities", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return dump_uses(value)


class AgentPage(Page):
    """Stored agents, newest first."""

    items: tuple[AgentOut, ...] = documented("agents of this page", [])
