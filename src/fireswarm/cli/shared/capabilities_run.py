"""Output of ``capabilities``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from fireswarm.capabilities import Capability, registry
from fireswarm.capabilities.describe import tools_of
from fireswarm.capabilities.workspace.artifacts import ArtifactWriter, artifact_tools
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.cli.shared.options import console, print_json
from fireswarm.cli.shared.tables import table
from fireswarm.clocks import ServerClock
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.llm.chat import ToolSpec
from fireswarm.contracts.skills.capability import CapabilityStatus
from fireswarm.contracts.skills.tool import Tool
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.tools import offered_tools
from fireswarm.processes.startup import run_loop


def own_tools(cwd: Path) -> dict[str, ToolSpec]:
    """Return the tools that every run of the agent has without a capability, by name."""
    tools = workspace_tools(cwd) | artifact_tools(ArtifactWriter(cwd, cwd, str))
    return {tool.name: tool for tool in offered_tools(Assignment("", "", Grant(cwd), tools=tools))}


def list_all(*, as_json: bool, tools: Mapping[str, ToolSpec] | None = None) -> None:
    """Print all capabilities, and before them the agent's own *tools*."""
    known = [registry().known[name] for name in sorted(registry().known)]
    if as_json:
        items = [capability.info.model_dump(mode="json", exclude_none=True) for capability in known]
        own = {} if tools is None else {"tools": [_spec_row(tool) for tool in tools.values()]}
        print_json({"items": items, "total": len(items), **own})
        return
    if tools:
        listed = [(tool.name, tool.description) for tool in tools.values()]
        table("tools of the agent, without a capability", ("tool", "purpose"), listed, none="")
    shown = [(each, "" if each.status is CapabilityStatus.AVAILABLE else f" ({each.status.value})") for each in known]
    rows = [(each.id, each.category or "", f"{each.name}{status}: {each.description}") for each, status in shown]
    table("capabilities", ("id", "category", "purpose"), rows, none="there are none")


def show_tool(tool: ToolSpec, *, as_json: bool) -> None:
    """Print one of the agent's own tools with its inputs."""
    if as_json:
        print_json(_spec_row(tool))
        return
    console.print(Text.assemble((tool.name, "bold"), "  a tool of every run"))
    console.prose(tool.description)
    needed = tool.parameters.get("required", ())
    inputs: dict[str, dict[str, Any]] = tool.parameters.get("properties", {})
    rows = [
        (name, "yes" if name in needed else "", str(schema.get("description", ""))) for name, schema in inputs.items()
    ]
    table("inputs", ("name", "needed", "purpose"), rows, none="No inputs.")


def show(name: str, *, as_json: bool) -> None:
    """Print one capability: its settings with defaults, where they can be set, and its tools. Raises NotFound."""
    capability = registry().get(name)
    tools = run_loop(tools_of, capability, ServerClock())
    settings: dict[str, dict[str, Any]] = capability.config.model_json_schema().get("properties", {})
    if as_json:
        info: dict[str, Any] = capability.info.model_dump(mode="json", exclude_none=True)
        info |= {"needs": capability.needs, "settings": settings, "operator_keys": capability.operator_keys}
        print_json(info | {"tools": None if tools is None else [_tool_row(tool) for tool in tools]})
        return
    words = f"  {capability.name}, {capability.status.value}, {capability.source}"
    console.print(Text.assemble((capability.id, "bold"), words))
    console.prose(capability.description)
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


def _spec_row(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _tool_row(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "idempotent": tool.idempotent,
        "writes": tool.writes,
    }
