"""A connection to one MCP server: opened on demand, reopened if the server died, closed with the agent."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio
import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError

from fireswarm.capabilities.mcp.results import value_of_result
from fireswarm.capabilities.mcp.schema import object_schema
from fireswarm.capabilities.mcp.settings import McpConfig, McpServer, expand_variables, identity
from fireswarm.capabilities.tool_names import spellings_of
from fireswarm.capabilities.web.http_client import Guard, GuardedTransport
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import FireswarmError, HostRefused, ToolFailed
from fireswarm.redaction import environment_redactor
from fireswarm.settings.load import home_folder
from fireswarm.settings.trust import PinnedTools

MAX_PAGES = 50
MAX_TOOLS = 1_000
MAX_DESCRIPTION_CHARS = 1_500
MAX_LOG_BYTES = 2_000
"""Maximum bytes from the end of a server's stderr that are shown with its failure."""

WITHHELD = (
    "[The server changed this tool: its description and its input are withheld until a person has read them at the "
    "next call, and decided.]"
)

_lists: dict[str, tuple[datetime, tuple[types.Tool, ...]]] = {}
"""Cached tool lists by server: if an agent calls none of a server's tools, the server is not started."""


@dataclass(slots=True)
class Connection:
    """One server. ``keep`` runs concurrently with the agent; ``tools`` and tool calls connect on demand."""

    name: str
    server: McpServer
    config: McpConfig
    clock: Clock
    environment: Mapping[str, str]
    pins: PinnedTools
    _client: Client | None = None
    _failure: Exception | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _decided: anyio.Event = field(default_factory=anyio.Event)
    _ended: anyio.Event = field(default_factory=anyio.Event)
    _put_away: anyio.Event = field(default_factory=anyio.Event)

    async def keep(self) -> None:
        """Connect when requested, and hold the connection open."""
        while True:
            await self._wanted.wait()
            self._ended, self._put_away = anyio.Event(), anyio.Event()
            try:
                await self._hold()
            except Exception as error:  # a foreign server may cause any error; the caller gets it
                self._failure = error
            self._client, self._wanted = None, anyio.Event()
            self._decided.set()
            self._put_away.set()

    async def _hold(self) -> None:
        """Connect, and wait until the connection ends. Raises an error with the server's log."""
        with tempfile.TemporaryFile("w+b") as log:
            try:
                with anyio.CancelScope(deadline=anyio.current_time() + self.config.start_seconds) as scope:
                    async with Client(self._transport(log), cache=None, message_handler=self._hear) as client:
                        scope.deadline = math.inf
                        self._client = client
                        self._decided.set()
                        await self._until_ended(client)
            except Exception as error:  # as above, with the server's log
                raise self._explain_failure(error, log) from error
            if scope.cancelled_caught:
                raise self._explain_failure(TimeoutError(f"no response within {self.config.start_seconds:g} s"), log)

    async def _until_ended(self, client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, client)
            await self._ended.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes: newer servers send notifications only to subscribers."""
        offered = client.server_capabilities.tools
        if offered is None or not offered.list_changed:
            return
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    _lists.pop(identity(self.server), None)

    async def _hear(self, message: Any) -> None:
        """Handle a notification: older servers send notifications to every client."""
        if isinstance(message, types.ToolListChangedNotification):
            _lists.pop(identity(self.server), None)

    def _transport(self, log: IO[bytes]) -> Transport:
        """Return the transport of the server: its process, or HTTP."""
        server = self.server
        where = f"the MCP server {self.name}"
        if server.command:
            own = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env={
                    "PYTHONSAFEPATH": "1",
                    "PATH": self.environment.get("PATH", ""),
                    **expand_variables(server.env, self.environment, where),
                },
                cwd=server.cwd or _start_folder(),
            )
            return _watch_transport(stdio_client(own, errlog=log), self._ended)  # pyright: ignore[reportArgumentType] - any file
        headers = expand_variables(server.headers, self.environment, where)
        return _over_http(server.url, headers, Guard.of(server.allow_hosts), self.config.call_seconds)

    def _explain_failure(self, error: Exception, log: IO[bytes]) -> FireswarmError:
        """Return the reason of a failed connection in one line, with the last lines of the server's stderr."""
        cause = _innermost(error)
        if isinstance(cause, FireswarmError):
            return cause
        log.seek(max(0, log.seek(0, 2) - MAX_LOG_BYTES))
        written = " ".join(log.read().decode("utf-8", "replace").split())
        message = f"the MCP server {self.name} failed to start: {str(cause) or type(cause).__name__}"
        if isinstance(cause, FileNotFoundError):
            message += " (programs are not searched in the workspace: give the whole path of one)"
        return ToolFailed(environment_redactor().clean(f"{message}; its stderr: {written}" if written else message))

    async def client(self) -> Client:
        """Return the connected client, or raise the error of the connection."""
        if self._client is not None and not self._ended.is_set():
            return self._client
        if self._client is not None:
            await self._put_away.wait()
        if not self._wanted.is_set():
            self._failure, self._decided = None, anyio.Event()
            self._wanted.set()
        await self._decided.wait()
        if self._client is None:
            raise self._failure or ToolFailed(f"the MCP server {self.name} exited during startup")
        return self._client

    async def tools(self) -> Sequence[Tool]:
        """Return the server's tools, from the cache if possible."""
        kept = _lists.get(identity(self.server))
        if kept is None or self.clock.now() - kept[0] >= timedelta(seconds=self.config.keep_list_seconds):
            kept = (self.clock.now(), await self._list())
            _lists[identity(self.server)] = kept
        listed = {each.name: each for each in kept[1]}
        spellings = spellings_of(listed)
        changed = self.pins.find_changed({each.name: _digest(each) for each in kept[1]})
        tools = [self._tool(each, spellings[each.name]) for each in listed.values()]
        return [
            self._withhold_words(tool, each) if each.name in changed else tool
            for tool, each in zip(tools, listed.values(), strict=True)
        ]

    def _withhold_words(self, tool: Tool, listed: types.Tool) -> Tool:
        """Return a tool that its server has changed since it was approved: its words are for a person first."""

        async def run(given: Mapping[str, Any]) -> Any:
            self.pins.pin(listed.name, _digest(listed))  # it runs, so a person approved it, or wants no question
            return await tool.call(given)

        async def show(given: Mapping[str, Any]) -> str:
            return f"{tool.description}\n{json.dumps(tool.parameters, ensure_ascii=False, indent=1)}"

        reason = f"the MCP server {self.name} is new to this tool, or changed it since it was last approved"
        return replace(tool, run=run, preview=show, asks=reason, description=WITHHELD, parameters={"type": "object"})

    async def _list(self) -> tuple[types.Tool, ...]:
        """Request the server's list of tools, page by page."""
        client = await self.client()
        tools: list[types.Tool] = []
        cursor: str | None = None
        try:
            with anyio.fail_after(self.config.list_seconds):
                for _ in range(MAX_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    tools += page.tools
                    cursor = page.next_cursor
                    if not cursor or len(tools) > MAX_TOOLS:
                        break
        except TimeoutError as error:
            raise ToolFailed(
                f"the MCP server {self.name} did not list its tools within {self.config.list_seconds:g} s"
            ) from error
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise self._failure_of(error) from error
        return tuple(tools[:MAX_TOOLS])

    def _tool(self, tool: types.Tool, spellings: Sequence[str]) -> Tool:
        """Convert a server's tool to ours. *spellings* are the spellings of its name in rules."""
        hints = tool.annotations if self.server.trust_annotations else None
        reads = hints is not None and hints.read_only_hint is True
        idempotent = reads or (hints is not None and hints.idempotent_hint is True)
        words = " ".join((tool.description or tool.title or tool.name).split())
        clean = environment_redactor().clean
        schema, note = object_schema(environment_redactor().value(tool.input_schema, by_name=False))
        return Tool(
            f"mcp_{self.name}__{tool.name}",
            " ".join(filter(None, (clean(words)[:MAX_DESCRIPTION_CHARS], clean(note)))),
            schema,
            partial(self.call, tool.name, idempotent),
            idempotent,
            not reads,
            rule_names=tuple(f"{start}{self.name}__{each}" for start in ("mcp_", "mcp__") for each in spellings),
        )

    async def call(self, tool: str, idempotent: bool, given: Mapping[str, Any]) -> Any:
        """Call a tool. A dead server is restarted; the call is repeated only if that is safe."""
        for attempt in (1, 2):
            client = await self.client()
            try:
                with anyio.fail_after(self.config.call_seconds):
                    return value_of_result(await client.call_tool(tool, dict(given)), tool)
            except TimeoutError as error:
                raise ToolFailed(f"{tool} did not respond within {self.config.call_seconds:g} s") from error
            except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
                lost, unsent = _is_lost(error), _is_forgotten(error)
                if lost or unsent:
                    self._ended.set()
                if attempt == 1 and (unsent or (lost and idempotent)):
                    continue
                raise self._failure_of(error) from error
        raise AssertionError("the second attempt returns or raises")

    def _failure_of(self, error: Exception) -> ToolFailed:
        cleaned = environment_redactor().clean(str(error) or type(error).__name__)
        after = (
            "; the call may or may not have taken effect; the next call restarts the server" if _is_lost(error) else ""
        )
        return ToolFailed(f"the MCP server {self.name}: {cleaned}{after}")


@asynccontextmanager
async def _watch_transport(
    transport: AbstractAsyncContextManager[Any], ended: anyio.Event
) -> AsyncGenerator[tuple[Any, Any]]:
    """Yield a transport that reports when the server closes it."""
    async with transport as (read, write), anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Any](0)

        async def pump() -> None:
            async with send:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for message in read:
                        await send.send(message)
            ended.set()

        tasks.start_soon(pump)
        with receive:
            yield receive, write
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _over_http(
    url: str, headers: Mapping[str, str], guard: Guard, seconds: float
) -> AsyncGenerator[tuple[Any, Any]]:
    async with (
        httpx2.AsyncClient(
            transport=_Telling(guard), headers=dict(headers), timeout=httpx2.Timeout(30, read=seconds), trust_env=False
        ) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


class _Telling(GuardedTransport):
    """Reports a refused host as a failed connection, an error that the client can handle."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        try:
            return await super().handle_async_request(request)
        except HostRefused as error:
            raise httpx2.ConnectError(str(error), request=request) from error


def _digest(tool: types.Tool) -> str:
    """Return a digest of all that a server says about a tool."""
    said = json.dumps(tool.model_dump(mode="json"), sort_keys=True, default=str)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _is_lost(error: Exception) -> bool:
    return not isinstance(error, MCPError) or error.code == types.CONNECTION_CLOSED


def _is_forgotten(error: Exception) -> bool:
    """Return True if the server no longer knows the session, so that it did not process the request."""
    return isinstance(error, MCPError) and error.code == types.INVALID_REQUEST and "Session terminated" in str(error)


def _innermost(error: BaseException) -> BaseException:
    """Return the innermost error of nested groups, or the refused host behind a failed connection."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, FireswarmError):
            return cause
        cause = cause.__cause__
    return error


def _start_folder() -> Path:
    """Return the folder in which servers start: not the workspace, where commands may leave modules and programs."""
    home = home_folder()
    return home if home.is_dir() else Path(home.anchor)
