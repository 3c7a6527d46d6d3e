"""The gate before every request: checks host, authentication and size."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fireswarm.api.auth import Access
from fireswarm.api.problems import Refusal, refusal_of
from fireswarm.errors import FireswarmError
from fireswarm.redaction import Redactor

MAX_BODY_BYTES = 512 * 1024
"""Maximum size of a request; a task's context may have 200,000 bytes."""

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


@dataclass(frozen=True, slots=True)
class Gate:
    """ASGI middleware around the whole application. *hosts* are the accepted Host names; None accepts any.

    The check of the host prevents DNS rebinding: a web page could let its own name resolve to loopback.
    """

    app: ASGIApp
    access: Access
    redactor: Redactor
    hosts: Collection[str] | None = LOOPBACK_HOSTS
    max_body_bytes: int = MAX_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with an error."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here: the server closes what is not answered
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = await self._refusal(headers)
        body = b""
        if refusal is None:
            read = await self._read(receive)
            if read is None:
                refusal = _too_large(self.max_body_bytes)
            else:
                body = read
        if refusal is not None:
            await refusal.response()(scope, receive, _closing(send))
            return
        await self.app(scope, _body_then_rest(body, receive), _safe(send))

    async def _refusal(self, headers: dict[str, str]) -> Refusal | None:
        host = _name_of(headers.get("host", ""))
        if self.hosts is not None and host not in self.hosts:
            return Refusal(
                421, "misdirected_request", "this API serves loopback hosts only: use localhost, 127.0.0.1 or [::1]"
            )
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

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the whole body, or None if it is too large, whatever its Content-Length says."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > self.max_body_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(body)


def _too_large(limit: int) -> Refusal:
    detail = f"the request body exceeds {limit:,} bytes: put large content into a file or bucket and pass its URI"
    return Refusal(413, "content_too_large", detail)


def _name_of(host: str) -> str:
    """Return the host of a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


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
