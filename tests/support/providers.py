"""A local server with the APIs of all providers, streaming too, that can misbehave.

It checks what it receives as the providers document it, and answers 400 with the reason: a request that the
real API would refuse fails here as well.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tests.support.cloud_accounts import TokenServer
from tests.support.provider_replies import Received, Reply, bytes_of, counted, error_body, http
from tests.support.provider_routes import route

__all__ = ["FakeProviders", "Received", "Reply", "Script", "in_order"]


Script = Callable[[Received], Reply | Awaitable[Reply]]


def in_order(*replies: Reply) -> Callable[[Received], Reply]:
    """The first request gets the first reply, and so on, whatever was asked; the last one stays."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


@dataclass(slots=True)
class FakeProviders:
    """Answers by a script: a function of the request, or replies by how many answers there were.

    ``release`` lets a slow answer go on.
    """

    script: Script | Sequence[Reply]
    received: list[Received] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    tokens: TokenServer = field(default_factory=TokenServer)
    refused: list[str] = field(default_factory=list)
    """Reasons of the requests that broke a rule."""

    @property
    def calls(self) -> list[Received]:
        """Requests for an answer; counting tokens is not one."""
        return [request for request in self.received if request.kind == "generate"]

    @contextlib.asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncGenerator[FakeProviders]:
        """Serve on loopback."""
        connections: set[asyncio.StreamWriter] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.add(writer)
            try:
                while await self._exchange(reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                connections.discard(writer)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self.release.set()
            server.close()
            for writer in list(connections):
                writer.close()
            await server.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        if (answer := self.tokens.answer(target, headers, raw)) is not None:
            status, content = answer
            text = content if isinstance(content, str) else json.dumps(content)
            kind = "application/text" if isinstance(content, str) else "application/json"
            writer.write(http(status, text.encode(), [("Metadata-Flavor", "Google")], kind))
            await writer.drain()
            return True
        request, status, fault = route(method, target, headers, raw, self.tokens)
        if fault or request is None:
            self.refused.append(fault)
            writer.write(http(status, error_body(_form(target), status, fault)))
            await writer.drain()
            return True
        self.received.append(request)
        if request.kind == "count":
            writer.write(http(200, counted(request)))
            await writer.drain()
            return True
        return await self._reply(request, "stream" in target.lower() or bool(request.body.get("stream")), writer)

    async def _reply(self, request: Received, streams: bool, writer: asyncio.StreamWriter) -> bool:
        answer = self.script(request) if callable(self.script) else self.script[request.answers]
        reply = await answer if inspect.isawaitable(answer) else answer
        if reply.fault == "slow":
            await self.release.wait()
        if reply.fault == "reset":
            writer.transport.abort()
            return False
        writer.write(bytes_of(request, reply, streams))
        await writer.drain()
        return reply.fault != "cut"


def _form(target: str) -> str:
    """The platform whose form an error has."""
    if "google" in target or "/v1beta/" in target:
        return "gemini"
    if "/chat/" in target:
        return "openai"
    return "anthropic-bedrock" if target.startswith("/model/") else "anthropic"


async def _main(turns: int) -> None:
    """Answer each conversation with tool calls, and finish it at its last turn."""

    def script(request: Received) -> Reply:
        number = request.answers
        return Reply("done") if number + 1 >= turns else Reply(calls=(("add", {"a": number, "b": 1}),))

    async with FakeProviders(script).serving() as served:
        sys.stdout.write(served.url + "\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=10)
    asyncio.run(_main(parser.parse_args().turns))
