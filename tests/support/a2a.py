"""The agents of a swarm for tests: served on loopback, and called by the client of the official package."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
from a2a import types
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from fireswarm.api.a2a.mount import AgentServer
from fireswarm.api.auth import Access
from fireswarm.api.server import address_of, hosts_of, listening_socket, serve
from fireswarm.api.session import ApiSession
from fireswarm.redaction import Redactor
from tests.support.api import HEADERS, TOKEN
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig

SECRET = "hunter2-hunter2-hunter2"
State = types.TaskState


def text_part(text: str) -> types.Part:
    return types.Part(text=text)


def data_part(value: Any) -> types.Part:
    return types.Part(data=ParseDict(value, Value()))


def message(*parts: types.Part | str, **more: Any) -> types.Message:
    """A message of a user with a new id."""
    given = [text_part(part) if isinstance(part, str) else part for part in parts]
    more.setdefault("message_id", str(uuid.uuid4()))
    return types.Message(role=types.Role.ROLE_USER, parts=given, **more)


def text_of(task: types.Task) -> str:
    """The text of a task's status."""
    return "\n".join(part.text for part in task.status.message.parts if part.text)


def questions_of(task: types.Task) -> list[dict[str, Any]]:
    [part] = [part for part in task.status.message.parts if part.HasField("data")]
    return MessageToDict(part.data)["questions"]


@dataclass(frozen=True)
class Agents:
    """The served agents at *base*. ``service`` counts the open streams."""

    base: str
    service: ApiSession
    http: httpx.AsyncClient

    async def card(self, role: str = "scout") -> types.AgentCard:
        return await A2ACardResolver(self.http, f"{self.base}/a2a/{role}").get_agent_card()

    async def client(
        self, role: str = "scout", binding: str = "JSONRPC", *, streaming: bool = False, polling: bool = True
    ) -> Client:
        """The official client for the agent of a role."""
        settings = ClientConfig(
            streaming=streaming, polling=polling, httpx_client=self.http, supported_protocol_bindings=[binding]
        )
        return ClientFactory(settings).create(await self.card(role))

    async def rpc(self, method: str, params: Any, role: str = "scout", **headers: str) -> Any:
        """Send JSON-RPC as any program would, and return the answer."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return await self.post(json.dumps(body).encode(), role, **headers)

    async def post(self, body: bytes, role: str = "scout", **headers: str) -> Any:
        named = {"A2A-Version": "1.0", "Content-Type": "application/json", **headers}
        answer = await self.http.post(f"{self.base}/a2a/{role}", content=body, headers=named)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def send(client: Client, given: types.Message, **configuration: Any) -> types.Task:
    """Send a message and return the last task that is answered."""
    request = types.SendMessageRequest(
        message=given, configuration=types.SendMessageConfiguration(**configuration) if configuration else None
    )
    tasks = [event.task async for event in client.send_message(request)]
    return tasks[-1]


async def get(client: Client, task_id: str, **more: Any) -> types.Task:
    return await client.get_task(types.GetTaskRequest(id=task_id, **more))


@contextlib.asynccontextmanager
async def serving_agents(
    swarm: SwarmRig, *, approves: bool = False, headers: Mapping[str, str] = HEADERS
) -> AsyncGenerator[Agents]:
    """The agents of a swarm as a real server on loopback."""
    stop, started = anyio.Event(), anyio.Event()
    service = ApiSession(swarm.client, Redactor((TOKEN, SECRET)))
    with listening_socket("127.0.0.1", 0) as listening:
        base = address_of(listening)
        async with (
            anyio.create_task_group() as group,
            httpx.AsyncClient(headers=dict(headers), timeout=PATIENCE_SECONDS) as http,
        ):
            app = AgentServer(service, group, base, approves).application(Access(TOKEN), hosts_of(listening))
            group.start_soon(serve, app, listening, stop, started.set, [service.stopping])
            try:
                await started.wait()
                yield Agents(base, service, http)
            finally:
                stop.set()
