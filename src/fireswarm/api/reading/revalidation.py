"""HEAD, entity tags and 304 responses for all reads of the API, whatever their routes."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fireswarm.api.reading.entity_tags import TagCondition, hash_content

LEFT_ALONE = frozenset({"/v1/events", "/healthz", "/readyz", "/metrics"})
"""Paths without tags and HEAD: a stream has no end to hash, and figures are never the same twice."""

TAGGED = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})
CACHE_CONTROL = "private, no-cache"
"""A client may keep an answer for itself, and asks each time whether it is still true."""

NOT_SENT_AGAIN = ("content-length", "content-type", "content-disposition", "content-range", "accept-ranges")
"""Headers that describe a body, which a 304 does not have."""


@dataclass(frozen=True, slots=True)
class Revalidation:
    """ASGI middleware: a read gets an entity tag, a HEAD is answered as GET without the body.

    The tag is a hash of the body as it is sent, after redaction, unless the route gives one.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a read whose tag its ``If-None-Match`` names gets 304."""
        if not _is_read(scope):
            await self.app(scope, receive, send)
            return
        condition = TagCondition.parse(Headers(scope=scope).getlist("if-none-match"))
        answer = _TaggedAnswer(send, condition, is_silent=scope["method"] == "HEAD")
        await self.app({**scope, "method": "GET"}, receive, answer)


def _is_read(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    return scope["path"].removeprefix(scope.get("root_path", "")) not in LEFT_ALONE


@dataclass(slots=True)
class _TaggedAnswer:
    """Sends a response on with its tag. Its head waits for the body that is hashed, unless it has a tag already."""

    send: Send
    condition: TagCondition
    is_silent: bool
    head: Message | None = None
    body: bytearray = field(default_factory=bytearray)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            tag = Headers(raw=message["headers"]).get("etag", "")
            if tag or message["status"] != HTTPStatus.OK:
                await self._begin(message, tag)
            else:
                self.head = message
            return
        content, is_last = message.get("body", b""), not message.get("more_body", False)
        if self.head is not None:
            self.body += content
            if not is_last:
                return
            content = bytes(self.body)
            await self._begin(self.head, hash_content(content))
        if not self.is_silent:
            await self.send({"type": "http.response.body", "body": content, "more_body": not is_last})
        elif is_last:
            await self.send({"type": "http.response.body", "body": b""})

    async def _begin(self, head: Message, tag: str) -> None:
        """Send the head of the response: with its tag if it is a success, as a 304 if the client has the tag."""
        self.head = None
        headers, status = MutableHeaders(raw=[*head["headers"]]), head["status"]
        if tag and status in TAGGED:
            headers["ETag"], headers["Cache-Control"] = tag, CACHE_CONTROL
            headers.add_vary_header("Authorization")
            if self.condition.matches_weakly(tag):
                status, self.is_silent = HTTPStatus.NOT_MODIFIED.value, True
                for name in NOT_SENT_AGAIN:
                    del headers[name]
        await self.send({**head, "status": status, "headers": headers.raw})
