"""The HTTP API for tests: called in this process, and its streams read event by event."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
from starlette.types import ASGIApp, Message

from fireswarm.api.application import protected_application
from fireswarm.api.auth import Access
from fireswarm.api.server import hosts_of, listening_socket, serve
from fireswarm.api.session import ApiSession
from fireswarm.redaction import Redactor
from tests.support.swarm import SwarmRig

TOKEN = "a-token-for-tests-of-43-characters-in-length"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Api:
    """One session behind HTTP, and a client that may call it."""

    swarm: SwarmRig
    service: ApiSession
    app: ASGIApp
    client: httpx2.AsyncClient

    async def get(self, path: str, **headers: str) -> Any:
        return await self.ok("GET", path, headers=headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return await self.ok("POST", path, body, headers=headers)

    async def ok(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Any:
        answer = await self.call(method, path, body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        content = None if body is None else json.dumps(body).encode()
        given = {**({} if body is None else {"Content-Type": "application/json"}), **(headers or {})}
        return await self.client.request(method, path, headers=given, content=content)

    async def problem(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        """Status and code of an answer that is a problem."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.call(method, path, body, headers=named)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        told = answer.json()
        assert told["status"] == answer.status_code
        assert told["type"] == f"urn:fireswarm:problem:{told['code']}"
        return answer.status_code, told["code"]


@contextlib.asynccontextmanager
async def open_api(swarm: SwarmRig, *, secrets: tuple[str, ...] = (), **gate: Any) -> AsyncGenerator[Api]:
    """The API over a swarm, whose session is the one of its settings."""
    service = ApiSession(swarm.client, Redactor((TOKEN, *secrets)))
    app = protected_application(service, Access(TOKEN), **gate)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=HEADERS) as client:
        yield Api(swarm, service, app, client)


@contextlib.asynccontextmanager
async def serving(swarm: SwarmRig, access: Access | None = None) -> AsyncGenerator[int]:
    """The API over a swarm as a real server on loopback; gives its port."""
    stop, started = anyio.Event(), anyio.Event()
    service = ApiSession(swarm.client, Redactor((TOKEN,)))
    with listening_socket("127.0.0.1", 0) as listening:
        async with anyio.create_task_group() as group:
            app = protected_application(service, access or Access(TOKEN), hosts=hosts_of(listening))
            group.start_soon(serve, app, listening, stop, started.set, [service.stopping])
            try:
                await started.wait()
                yield listening.getsockname()[1]
            finally:
                stop.set()


@dataclass(slots=True)
class Stream:
    """A stream of server-sent events that is being read."""

    status: int = 0
    text: str = ""
    ended: bool = False
    gone: anyio.Event = field(default_factory=anyio.Event)

    @property
    def events(self) -> list[tuple[str, str, Any]]:
        """Id, kind and data of each whole event."""
        found: list[tuple[str, str, Any]] = []
        for block in self.text.split("\n\n")[:-1]:
            lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "data" in lines:
                found.append((lines.get("id", ""), lines["event"], json.loads(lines["data"])))
        return found

    def told(self) -> list[str]:
        """What each event says, in short."""
        return [data.get("status") or data.get("type") or kind for _, kind, data in self.events]


@contextlib.asynccontextmanager
async def streaming(
    api: Api,
    path: str,
    last: str | None = None,
    *,
    method: str = "GET",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> AsyncGenerator[Stream]:
    """Read a stream, or another response, while the block runs; at its end the client goes away."""
    path, _, query = path.partition("?")
    named = {"host": "localhost", **HEADERS, **({"last-event-id": last} if last else {}), **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
    stream, asked = Stream(), False

    async def receive() -> Message:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": body, "more_body": False}
        await stream.gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            stream.status = message["status"]
        else:
            stream.text += message.get("body", b"").decode()
            stream.ended = not message.get("more_body", False)

    async def run() -> None:
        await api.app(scope, receive, send)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            yield stream
        finally:
            stream.gone.set()
