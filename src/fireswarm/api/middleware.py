"""The gate before every request: checks host, authentication and size."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fireswarm.api.problems import Refusal, refusal_of
from fireswarm.errors import FireswarmError
from fireswarm.redaction import Redactor

MAX_BODY_BYTES = 512 * 1024
"""Maximum size of a request; a task's context may have 200,000 bytes."""

BODY_SECONDS = 30.0
"""Time limit for the whole body of a request. Only callers with a token can send one."""

HOST_HEADER = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?))(?::([0-9]{1,5}))?")
"""A Host header in lower case: an IPv6 address in brackets, or a name or IPv4 address; then the port, if any."""

CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and Unicode's ends of lines, in a path whose escapes are decoded."""

MAX_PORT = 65_535
ONCE_ONLY = (
    "authorization",
    "content-length",
    "content-type",
    "idempotency-key",
    "if-match",
    "last-event-id",
    "origin",
    "x-forwarded-proto",
    "x-goog-iap-jwt-assertion",
)
"""Headers that decide on a request."""

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no authentication: they say nothing but that the API and the store work."""

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


def is_loopback(host: str) -> bool:
    """Return True for a loopback address, or localhost."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Callers(Protocol):
    """Decides who may send requests."""

    async def allows(self, authorization: str) -> bool:
        """Return True if the value of an Authorization header is valid."""
        ...


@dataclass(frozen=True, slots=True)
class Gate:
    """ASGI middleware around the whole application. *hosts* are the accepted Host names; None accepts any.

    The check of the host prevents DNS rebinding, where a web page's own name resolves to loopback.
    """

    app: ASGIApp
    access: Callers
    redactor: Redactor
    hosts: Collection[str] | None = LOOPBACK_HOSTS
    max_body_bytes: int = MAX_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with an error."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here; the server closes unanswered ones
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        body = b""
        refusal = (
            _path_refusal(scope["path"])
            or _host_refusal([value for name, value in headers if name == "host"], self.hosts)
            or _repeated_refusal([name for name, _ in headers])
        )
        if refusal is None and scope["path"] in OPEN_PATHS and scope["method"] == "GET":
            await self.app(scope, _body_then_rest(b"", receive), _safe(send))
            return
        if refusal is None:
            refusal = await self._refusal(dict(headers))
        if refusal is None:
            read = await self._read(receive)
            if read is None:
                return  # the client left before the end of the body: an incomplete request is ignored
            if isinstance(read, Refusal):
                refusal = read
            else:
                body = read
        if refusal is not None:
            await refusal.response()(scope, receive, _closing(send))
            return
        await self.app(scope, _body_then_rest(body, receive), _safe(send))

    async def _refusal(self, headers: dict[str, str]) -> Refusal | None:
        try:
            allowed = await self.access.allows(headers.get("authorization", ""))
        except FireswarmError as error:
            return refusal_of(error, self.redactor)
        if not allowed:
            headers = {"WWW-Authenticate": 'Bearer realm="fireswarm"'}
            return Refusal(401, "unauthorized", "send the token as `Authorization: Bearer TOKEN`", headers=headers)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self.max_body_bytes:
            return _too_large(self.max_body_bytes)
        return None

    async def _read(self, receive: Receive) -> bytes | Refusal | None:
        """Return the whole body, or None if the client went away before its end.

        Returns a refusal for a body that takes too long or is too large, whatever its Content-Length.
        """
        body = bytearray()
        with anyio.move_on_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > self.max_body_bytes:
                    return _too_large(self.max_body_bytes)
                if not message.get("more_body", False):
                    return bytes(body)
        detail = f"the request body was not complete within {BODY_SECONDS:g} s: send the request again"
        return Refusal(408, "request_timeout", detail, retryable=True)


def _too_large(limit: int) -> Refusal:
    detail = f"the request body exceeds {limit:,} bytes: put large content into a file or bucket and pass its URI"
    return Refusal(413, "content_too_large", detail)


def _repeated_refusal(names: Sequence[str]) -> Refusal | None:
    """Return the refusal of a request that repeats a header: a proxy may have checked the other one."""
    repeated = next((name for name in ONCE_ONLY if names.count(name) > 1), None)
    return None if repeated is None else Refusal(400, "bad_request", f"send the header {repeated} once")


def _path_refusal(path: str) -> Refusal | None:
    """Return the refusal of a path with control characters: the pattern of a route lets a line's end follow it."""
    if CONTROL_CHARACTERS.search(path) is None:
        return None
    return Refusal(400, "bad_request", "the path has control characters: leave them out")


def _host_refusal(given: Sequence[str], hosts: Collection[str] | None) -> Refusal | None:
    """Return the refusal of a request with these Host headers, None if it is allowed."""
    name = _host_name(given[0]) if len(given) == 1 else None
    if name is None:
        return Refusal(400, "bad_request", "send one Host header: a name or address, and a port if there is one")
    if hosts is not None and name not in hosts:
        detail = "this API serves loopback hosts only: use localhost, 127.0.0.1 or [::1]"
        return Refusal(421, "misdirected_request", detail)
    return None


def _host_name(host: str) -> str | None:
    """Return the name or address of a Host header without its port, "" for an empty one, None if it is malformed."""
    match = HOST_HEADER.fullmatch(host.strip(" \t").lower())
    if match is None:
        return None if host.strip(" \t") else ""
    address, name, port = match.groups()
    if port is not None and int(port) > MAX_PORT:
        return None
    if name is not None:
        return name
    try:
        return str(ipaddress.IPv6Address(address))
    except ValueError:
        return None


def _body_then_rest(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that yields the complete body, then the following messages."""
    sent = False

    async def receive_rest() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_rest


def _safe(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            added = [pair for pair in SAFE_HEADERS if pair[0] not in names]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers


def _closing(send: Send) -> Send:
    """Close the connection after the response: the rest of a rejected body is not read."""

    async def send_checked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close"), *SAFE_HEADERS]}
        await send(message)

    return send_checked
