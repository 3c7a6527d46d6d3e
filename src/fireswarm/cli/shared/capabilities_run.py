"""Output of ``capabilities``."""

from __future__ import annotations

from typing import Any

import anyio
from rich.text import Text

from fireswarm.capabilities import Capability, registry
from fireswarm.capabilities.describe import tools_of
from fireswarm.cli.shared.options import console, print_json, table
from fireswarm.clocks import ServerClock
from fireswarm.contracts.skills.capability import CapabilityStatus
from fireswarm.contracts.skills.tool import Tool


def list_all(*, as_json: bool) -> None:
    """Print all capabilities."""
    known = [registry().known[name] for name in sorted(registry().known)]
    if as_json:
        items = [capability.info.model_dump(mode="json", exclude_none=True) for capability in known]
        print_json({"items": items, "total": len(items)})
        return
    shown = [(each, "" if each.status is CapabilityStatus.AVAILABLE else f" ({each.status.value})") for each in known]
    rows = [(each.id, each.category or "", f"{each.name}{status}: {each.description}") for each, status in shown]
    table("capabilities", ("id", "category", "purpose"), rows, none="there are none")


def show(name: str, *, as_json: bool) -> None:
    """Print one capability: its settings with defaults, where they can be set, and its tools. Raises NotFound."""
    capability = registry().get(name)
    tools = anyio.run(tools_of, capability, ServerClock())
    settings: dict[str, dict[str, Any]] = capability.config.model_json_schema().get("properties", {})
    if as_json:
        info: dict[str, Any] = capability.info.model_dump(mode="json", exclude_none=True)
        info |= {"needs": capability.needs, "settings": settings, "operator_keys": capability.operator_keys}
        print_json(info | {"tools": None if tools is None else [_tool_row(tool) for tool in tools]})
        return
    words = f"  {capability.name}, {capability.status.value}, {capability.source}"
    console.print(Text.assemble((capability.id, "bold"), words))
    console.print(capability.description, soft_wrap=True)
    rows = [
        (key, str(schema.get("default", "")), _setter(capability, key), schema.get("description", ""))
        for key, schema in settings.items()
    ]
    table("settings", ("key", "default", "set by", "purpose"), rows, none="No settings.")
    if tools is None:
        console.print("The tools depend on the settings.")
        return
    listed = [(tool.name, "yes" if tool.writes else "", tool.description) for tool in tools]
    table("tools", ("name", "writes", "purpose"), listed, none="No tools.")


def _setter(capability: Capability, key: str) -> str:
    return "role card" if key in capability.operator_keys else "task, role card"


def _tool_row(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "idempotent": tool.idempotent,
        "writes": tool.writes,
    }
