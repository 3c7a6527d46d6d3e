"""The ASGI application of the agents: the routes of the package for each role, cards, files, and checks of bodies."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Never

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import InvalidRequestError
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fireswarm.api.a2a.cards import PREFIX, agent_path, make_card
from fireswarm.api.a2a.handler import RoleAgent
from fireswarm.api.a2a.messages import MessageDesk
from fireswarm.api.a2a.streams import REQUEST, TaskStreams
from fireswarm.api.a2a.views import TaskViews
from fireswarm.api.middleware import LOOPBACK_HOSTS, Callers, Gate
from fireswarm.api.problems import refusal_of
from fireswarm.api.session import ApiSession, attachment
from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.errors import FireswarmError

MAX_MESSAGE_BYTES = 8_000_000
"""Maximum size of a request: a file of 5 MB has 6.7 MB as base64."""

MAX_VALUES, MAX_TEXT_BYTES = 1_000, 128_000
"""Maximum number of values of a request, and of bytes besides those of its files.

The package reads and checks each value on the event loop, in about 45 microseconds: all others wait meanwhile.
"""

_FILE = re.compile(rb'"(?:raw|bytes)"\s*:\s*"[A-Za-z0-9+/=_-]*"')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class CallContexts(DefaultServerCallContextBuilder):
    """Builds the context of a call, with the HTTP request: it tells who calls, and when the client leaves."""

    def build(self, request: Request) -> ServerCallContext:
        """Return the context."""
        context = super().build(request)
        context.state[REQUEST] = request
        return context


@dataclass(frozen=True, slots=True)
class AgentServer:
    """Serves the roles of a session as agents at *base*; *group* are the tasks of the server."""

    service: ApiSession
    group: TaskGroup
    base: str
    approves: bool = False

    def application(self, access: Callers, hosts: Collection[str] | None = LOOPBACK_HOSTS) -> ASGIApp:
        """Return the application as served: behind the gate that checks host, token and size of requests."""
        return Gate(self.make_agents(), access, self.service.redactor, hosts, MAX_MESSAGE_BYTES)

    def make_agents(self) -> ASGIApp:
        """Return the application without the gate."""
        roles = self.service.swarm.parts.roles
        routes = [Route(PREFIX, self._list_agents, methods=["GET"])]
        routes += [route for role in roles for route in self._routes_of(role)]
        first = DEFAULT_ROLE if DEFAULT_ROLE in roles else next(iter(roles))
        routes += create_agent_card_routes(self._card(first), card_url=AGENT_CARD_WELL_KNOWN_PATH)
        app = Starlette(routes=routes, exception_handlers={FireswarmError: self._show_error})
        app.router.redirect_slashes = False
        return JsonBodies(app)

    def _routes_of(self, role: str) -> list[Route]:
        path = agent_path(role)
        swarm, redactor = self.service.swarm, self.service.redactor
        desk = MessageDesk(swarm, role, redactor, self.approves)
        views = TaskViews(swarm, redactor, f"{self.base}{path}")
        agent = RoleAgent(swarm, redactor, desk, views, TaskStreams(self.service, self.group))

        async def download(request: Request) -> Response:
            task = await desk.read(request.path_params["task_id"])
            return attachment(await views.read_file(task, request.path_params["number"]), {})

        contexts = CallContexts()
        routes: list[BaseRoute] = [
            *create_agent_card_routes(self._card(role), card_url=f"{path}{AGENT_CARD_WELL_KNOWN_PATH}"),
            *create_jsonrpc_routes(agent, path, contexts, enable_v0_3_compat=False),
            *create_rest_routes(agent, contexts, path_prefix=path),
            Route(f"{path}/tasks/{{task_id}}/files/{{number}}", download, methods=["GET"]),
        ]
        return [route for route in routes if isinstance(route, Route)]  # the package also mounts a path for tenants

    def _card(self, role: str) -> Any:
        parts = self.service.swarm.parts
        return make_card(parts, parts.roles[role], self.service.redactor, self.base)

    async def _list_agents(self, request: Request) -> Response:
        """Return the roles with the addresses of their cards."""
        roles = self.service.swarm.parts.roles.values()
        agents = [
            {
                "name": role.name,
                "description": self.service.redactor.clean(role.description),
                "card": f"{self.base}{agent_path(role.name)}{AGENT_CARD_WELL_KNOWN_PATH}",
            }
            for role in roles
        ]
        return JSONResponse({"agents": agents})

    async def _show_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, FireswarmError)
        return refusal_of(error, self.service.redactor).response()


def beside_agents(agents: ASGIApp, others: ASGIApp) -> ASGIApp:
    """Return one application: the agents and their first card at their paths, the others elsewhere."""

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        mine = path in (PREFIX, AGENT_CARD_WELL_KNOWN_PATH) or path.startswith(f"{PREFIX}/")
        await (agents if mine else others)(scope, receive, send)

    return choose


@dataclass(frozen=True, slots=True)
class JsonBodies:
    """ASGI middleware inside the gate: a body that is no JSON gets the protocol's error for it.

    The package answers some of them as if it had failed itself: other encodings, deep nesting and NaN.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with the error of its binding."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        first = await receive()
        if fault := json_fault(first.get("body", b"")):
            await _refusal(scope["path"], fault)(scope, receive, send)
            return
        pending = [first]

        async def receive_again() -> Message:
            return pending.pop() if pending else await receive()

        await self.app(scope, receive_again, send)


def json_fault(body: bytes) -> str:
    """Return why a body is no JSON, or "". An empty one is none, which only some requests may have."""
    if not body:
        return ""
    text = _FILE.sub(b'""', body)
    if len(text) > MAX_TEXT_BYTES:
        return f"the body has more than {MAX_TEXT_BYTES:,} bytes besides files: send longer texts as files, in raw"
    bare = _STRING.sub(b"", text)
    if sum(bare.count(mark) for mark in (b",", b"[", b"{")) > MAX_VALUES:
        return f"the body has more than {MAX_VALUES:,} values: send them as a file, in raw"
    try:
        json.loads(body.decode(), parse_constant=_refuse_number, parse_float=_parse_float)
    except (ValueError, RecursionError) as error:
        return f"the body is not JSON: {error}"
    return ""


def _parse_float(text: str) -> float:
    """Return a number. Raises ValueError for one that is too large: it would be read as infinity."""
    return number if math.isfinite(number := float(text)) else _refuse_number(text)


def _refuse_number(text: str) -> Never:
    raise ValueError(f"{truncate(text, MAX_LABEL_CHARS)} is no number that can be stored")


def _refusal(path: str, fault: str) -> Response:
    """Return the error of JSON-RPC, whose only address is that of the agent, or else of HTTP+JSON."""
    is_rpc = "/" not in path.removeprefix(f"{PREFIX}/")
    if is_rpc:
        return JSONResponse(build_error_response(None, JSONParseError(message=fault)))
    return JSONResponse(build_rest_error_payload(InvalidRequestError(fault)), HTTPStatus.BAD_REQUEST)
