"""A stored agent: a role with additional capabilities and instructions. Tasks can be submitted for it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Contract, DocumentId, RoleName, Stored, Timestamp
from fireswarm.contracts.skills.capability import CapabilityUse

DEFAULT_ROLE = "architect"
MAX_INSTRUCTIONS_CHARS = 20_000
"""Maximum length of an agent's system prompt. With a role's prompt it stays well below a model's context."""

MAX_USES = 20


class AgentLife(StrEnum):
    """An archived agent stays stored but gets no new tasks."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class AgentSpec(Contract):
    """Fields of an agent to store. The order of ``capabilities`` is their priority."""

    name: str = Field(min_length=1, max_length=200)
    role: RoleName = DEFAULT_ROLE
    system_prompt: str = Field(default="", max_length=MAX_INSTRUCTIONS_CHARS)
    capabilities: tuple[CapabilityUse, ...] = Field(default=(), max_length=MAX_USES)
    status: AgentLife = AgentLife.ACTIVE


class Agent(Stored):
    """A document of ``agents``. ``version`` counts its changes, from 1."""

    agent_id: DocumentId
    session_hash: str
    name: str
    role: RoleName
    system_prompt: str = ""
    capabilities: tuple[CapabilityUse, ...] = ()
    status: AgentLife = AgentLife.ACTIVE
    version: int = Field(ge=1)
    created_at: Timestamp
    updated_at: Timestamp
