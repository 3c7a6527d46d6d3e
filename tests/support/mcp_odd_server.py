"""An MCP server over stdio with the names, schemas and contents that real servers have."""

from __future__ import annotations

import base64
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from fireswarm.capabilities import CapabilityContext, registry
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.tool import Tool

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4 a page"
LONG = "a" * 79
NAMES = ("create.entities", "x.y", "x_y", "x/y", f"{LONG}b", f"{LONG}c", "plain", "look")
EITHER: dict[str, Any] = {
    "type": "object",
    "required": ["kind"],
    "oneOf": [
        {"properties": {"kind": {"const": "file"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
        {"properties": {"kind": {"const": "page"}, "url": {"$ref": "#/$defs/Url"}}, "required": ["kind", "url"]},
    ],
    "$defs": {"Url": {"type": "string", "minLength": 8}},
}
OBJECT: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


@asynccontextmanager
async def opened(prefix: str = "") -> AsyncGenerator[Mapping[str, Tool]]:
    """Yield the tools of this server, started as ``s``."""
    server = {"command": sys.executable, "args": ["-P", str(Path(__file__))]}
    use = CapabilityUse(id="mcp", config={"servers": {"s": server}}, prefix=prefix)
    async with registry().open([use], CapabilityContext("s", Path(), VirtualClock())) as found:
        yield found.tools


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Answer with all tools."""
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema=EITHER if name == "plain" else OBJECT) for name in NAMES]
    )


def image(content: bytes, mime_type: str = "image/png") -> types.ImageContent:
    """Return an image of a result."""
    return types.ImageContent(data=base64.encodebytes(content).decode(), mime_type=mime_type)


def blob(uri: str, content: bytes) -> types.EmbeddedResource:
    """Return a file of a result."""
    return types.EmbeddedResource(resource=types.BlobResourceContents(uri=uri, blob=base64.b64encode(content).decode()))


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer with the name that was called, or with an image."""
    if params.name == "look":
        return types.CallToolResult(content=[types.TextContent(text="a dot"), image(PIXEL)])
    return types.CallToolResult(content=[types.TextContent(text=f"called {params.name}")])


async def main() -> None:
    """Serve until the input ends."""
    server = Server[Any]("odd server", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
