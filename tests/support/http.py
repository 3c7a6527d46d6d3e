"""The smallest HTTP server on loopback: a function answers each request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "GET"


@dataclass(frozen=True, slots=True)
class Response:
    """``hangs``: nothing is sent at all, or no more than this body of one announced as longer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    hangs: Literal["", "before", "after"] = ""


@dataclass(slots=True)
class HttpServer:
    answer: Callable[[Request], Response]

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncGenerator[str]:
        """Serve inside the block; yields the address."""
        open_connections: set[asyncio.StreamWriter] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            open_connections.add(writer)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    await self._exchange(reader, writer)
            open_connections.discard(writer)
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for writer in list(open_connections):
                writer.close()
            await server.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = head[0].split(" ")
        response = self.answer(Request(path, headers, body, method))
        if response.hangs == "before":
            await reader.readexactly(1)
        length = len(response.body) + (response.hangs == "after")
        told = {"Content-Type": "application/json", "Content-Length": str(length), **response.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        sent = b"" if method == "HEAD" else response.body
        writer.write(f"HTTP/1.1 {response.status} As told\r\n{lines}\r\n".encode() + sent)
        await writer.drain()
