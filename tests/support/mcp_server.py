"""An MCP server for tests: over stdio when run by itself, or as an application to be served."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("test server")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(name: str) -> str:
    """Looks at one thing."""
    return f"{name} is there, says {os.getpid()}"


@server.tool()
def change(name: str) -> dict[str, str]:
    """Changes something."""
    return {"changed": name}


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(name: str) -> str:
    """Sets something."""
    return name


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("the disk is full")


@server.tool()
async def hang() -> str:
    """Never answers."""
    await anyio.sleep_forever()
    return ""


@server.tool()
def picture() -> Image:
    """Paints."""
    return Image(data=b"\x89PNG", format="png")


@server.tool()
def environment() -> list[str]:
    """Tells the names of its variables."""
    return sorted(os.environ)


@server.tool()
def variable(name: str) -> str:
    """Tells one variable."""
    return os.environ.get(name, "")


@server.tool()
def die() -> str:
    """Ends the server before it answers."""
    os._exit(1)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def die_once(mark: str) -> str:
    """Ends the server before it answers, the first time."""
    if not os.path.exists(mark):  # noqa: PTH110 - plain, as a server of somebody else would be
        os.close(os.open(mark, os.O_CREAT))
        os._exit(1)
    return "alive again"


@server.tool()
async def learn(ctx: Context[Any, Any]) -> str:
    """Gets a new tool, and tells."""

    def learned() -> str:
        """Was learned."""
        return "learned"

    server.add_tool(learned)
    await ctx.notify_tools_changed()
    return "ok"


if __name__ == "__main__":
    if "--silent" in sys.argv:
        anyio.run(anyio.sleep_forever)
    server.run()
