"""Describe tools in the system text, for a model that cannot call them by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fireswarm.contracts.skills.tool import Tool


def describe_tools(tools: Mapping[str, Tool]) -> str:
    """Describe the tools for the model, in the system text."""
    lines = [f"- `{tool.name}`: {tool.description} Input: {_input_of(tool)}" for tool in tools.values()]
    return "\n".join(["# Tools", "", *lines]) if lines else ""


def _input_of(tool: Tool) -> str:
    """Return names and types of the parameters if that is sufficient, otherwise the schema."""
    properties: dict[str, dict[str, Any]] = tool.parameters.get("properties", {})
    if "$defs" in tool.parameters or any("type" not in schema for schema in properties.values()):
        return json.dumps(tool.parameters, separators=(",", ":"))
    required = tool.parameters.get("required", ())
    named = (
        f"{name}{'' if name in required else '?'}: {'|'.join(schema.get('enum', ())) or schema['type']}"
        for name, schema in properties.items()
    )
    return ", ".join(named) or "none"
