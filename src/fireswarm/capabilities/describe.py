"""Describe a capability: its tools with the default settings."""

from __future__ import annotations

from pathlib import Path

from fireswarm.capabilities.capability import Capability, CapabilityContext
from fireswarm.capabilities.registry import registry
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import ConfigError


async def tools_of(capability: Capability, clock: Clock) -> list[Tool] | None:
    """Return the tools, or None if they depend on settings without a default."""
    context = CapabilityContext("", Path(), clock)
    try:
        async with registry().open([CapabilityUse(id=capability.id)], context) as given:
            return list(given.tools.values())
    except ConfigError:
        return None
