"""mcp: the tools of MCP servers, started as processes (stdio) or reached over streamable HTTP."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from fireswarm.capabilities.capability import Capability, CapabilityContext
from fireswarm.capabilities.mcp.settings import McpConfig, identity
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import ConfigError, FireswarmError
from fireswarm.processes.confinement.view import outside_of
from fireswarm.settings.extras import install_command
from fireswarm.settings.load import home_folder
from fireswarm.settings.trust import PinnedTools

if TYPE_CHECKING:  # the optional official package is slow to import
    from fireswarm.capabilities.mcp.connection import Connection


@asynccontextmanager
async def _open(config: McpConfig, context: CapabilityContext) -> AsyncGenerator[Sequence[Tool]]:
    """Connect to the servers and yield their tools until the block ends.

    Their programs are searched outside of the workspace, where commands of a model may leave some.
    """
    try:
        from fireswarm.capabilities.mcp.connection import Connection
    except ImportError as error:
        raise ConfigError(f"the capability mcp needs the extra mcp ({error}): {install_command('mcp')}") from error
    path = outside_of(os.environ.get("PATH", os.defpath), [Path.cwd(), context.workdir.resolve()])
    environment = {**os.environ, "PATH": path}
    connections = [
        Connection(name, server, config, context.clock, environment, PinnedTools(home_folder(), identity(server)))
        for name, server in config.servers.items()
    ]
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for connection in connections:
            tasks.start_soon(connection.keep)
        try:
            yield await _tools_of(connections)
        except Exception as error:  # must leave the task group unwrapped; raised again below
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _tools_of(connections: Sequence[Connection]) -> list[Tool]:
    """Return the tools of all servers, listed concurrently, in the order of the settings."""
    tools: dict[str, Sequence[Tool]] = {}
    failures: dict[str, FireswarmError] = {}

    async def ask(connection: Connection) -> None:
        try:
            tools[connection.name] = await connection.tools()
        except FireswarmError as error:
            if not connection.server.optional:
                failures[connection.name] = error

    async with anyio.create_task_group() as tasks:
        for connection in connections:
            tasks.start_soon(ask, connection)
    for connection in connections:
        if connection.name in failures:
            raise failures[connection.name]
    return [tool for connection in connections for tool in tools.get(connection.name, ())]


MCP = Capability(
    "mcp",
    "MCP Servers",
    "The tools of MCP servers, started as processes or reached over HTTP.",
    opens=_open,
    config=McpConfig,
    operator_keys=("servers",),
    icon="plug",
    category="Network",
)
