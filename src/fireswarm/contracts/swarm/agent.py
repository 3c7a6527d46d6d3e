"""A stored agent: a role with capabilities and instructions of its own, by name. Tasks can be submitted for it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Contract, DocumentId, RoleName, Stored, Timestamp
from fireswarm.contracts.skills.capability import CapabilityUse

DEFAULT_ROLE = "architect"
MAX_INSTRUCTIONS_CHARS = 20_000
"""Of an agent's system prompt: with a role's own it stays well below what a model is shown at most."""

MAX_USES = 20


class AgentLife(StrEnum):
    """An archived agent is kept for the record and is given no more tasks."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class AgentSpec(Contract):
    """What somebody asks to be stored. The order of ``capabilities`` is their priority."""

    name: str = Field(min_length=1, max_length=200)
    role: RoleName = DEFAULT_ROLE
    system_prompt: str = Field(default="", max_length=MAX_INSTRUCTIONS_CHARS)
    capabilities: tuple[CapabilityUse, ...] = Field(default=(), max_length=MAX_USES)
    status: AgentLife = AgentLife.ACTIVE


class Agent(Stored):
    """One document of ``agents``. ``version`` counts its changes, from 1."""

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
