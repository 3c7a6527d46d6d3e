"""Requests that carry an ``Idempotency-Key`` are carried out once; the same request again gets the same answer.

The key is claimed by a document in ``api_requests`` before the work begins, so it holds across processes. An answer of
500 or more gives the claim back: such a request can be sent again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from fireswarm.api.problems import Refusal, methods_at, refusal_of
from fireswarm.contracts.base import as_utc
from fireswarm.contracts.ports import Create, Delete, Snapshot, Update
from fireswarm.errors import Conflict, FireswarmError
from fireswarm.redaction import Redactor
from fireswarm.storage.documents.paths import REQUESTS
from fireswarm.swarm.swarm import Swarm

KEEP_SECONDS = 24 * 3600.0
CLAIM_SECONDS = 60.0
"""A claim without an answer is taken over after so long: its process died."""

MAX_KEY_CHARS = 200
MAX_KEPT_BYTES = 700_000
"""A document holds 1 MiB."""

KEPT_HEADERS = ("content-type", "location", "etag")
METHODS = frozenset({"POST", "PATCH", "DELETE"})

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Answer:
    """An answer on its way out, kept while it is sent."""

    send: Send
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    body: bytearray = field(default_factory=bytearray)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    async def release(self) -> None:
        """Send what was held back."""
        await self.send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await self.send({"type": "http.response.body", "body": bytes(self.body)})

    def to_document(self) -> dict[str, Any]:
        """As it is stored."""
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.headers}
        content = self.body.decode("utf-8", "replace") if len(self.body) <= MAX_KEPT_BYTES else None
        return {
            "status": self.status,
            "headers": {name: named[name] for name in KEPT_HEADERS if name in named},
            "content": content,
        }


@dataclass(frozen=True, slots=True)
class Once:
    """ASGI middleware, inside the gate: bodies are whole and of bounded size here."""

    app: FastAPI
    swarm: Swarm
    redactor: Redactor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry a request out, or give the answer that it got before."""
        key = _key(scope)
        if key is None or scope["method"] not in methods_at(self.app, scope["path"]):
            await self.app(scope, receive, send)
            return
        if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
            detail = f"an Idempotency-Key must have 1 to {MAX_KEY_CHARS} printable characters"
            await Refusal(422, "invalid_request", detail).response()(scope, receive, send)
            return
        first = await receive()
        body = first.get("body", b"")
        try:
            claimed = await self._claim(key, _fingerprint(scope, body))
        except FireswarmError as error:
            claimed = refusal_of(error, self.redactor).response()
        if isinstance(claimed, Response):
            await claimed(scope, receive, send)
            return
        await self._carry_out(claimed, scope, _again(first, receive), send)

    async def _carry_out(self, claimed: Snapshot, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        try:
            await self.app(scope, receive, answer)
        finally:  # what the application raises is answered already, and logged by the server
            if answer.status:
                await self._keep(claimed.path, answer)
                await answer.release()

    async def _keep(self, path: str, answer: _Answer) -> None:
        """Store the answer, or give the claim back; where the store is away, the claim runs out by itself."""
        failed = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        try:
            await self.swarm.store.commit([Delete(path) if failed else Update(path, answer.to_document())])
        except FireswarmError as error:
            logger.warning("cannot store the response for its Idempotency-Key: %s", error)

    async def _claim(self, key: str, fingerprint: str) -> Snapshot | Response:
        """The claim; or what is answered instead."""
        swarm = self.swarm
        now = swarm.clock.now()
        path = f"{REQUESTS}/{hashlib.sha256(f'{swarm.settings.session}\n{key}'.encode()).hexdigest()[:40]}"
        fields = {
            "session_hash": swarm.settings.session,
            "fingerprint": fingerprint,
            "status": 0,
            "claimed_at": now,
            "expires_at": now + timedelta(seconds=KEEP_SECONDS),
        }
        try:
            await swarm.store.commit([Create(path, fields)])
            return Snapshot(path, fields)
        except Conflict:
            found = await swarm.store.get(path)
        data = found.data or {}
        expired = data and as_utc(data["expires_at"]) <= now
        if data and not expired and data.get("fingerprint") != fingerprint:
            detail = "this Idempotency-Key was used for a different request: use a new key"
            return Refusal(422, "idempotency_key_reused", detail).response()
        if data and not expired and data["status"]:
            return _replay_response(data)
        stale = data and as_utc(data["claimed_at"]) + timedelta(seconds=CLAIM_SECONDS) <= now
        if expired or stale:
            try:
                await swarm.store.commit([Update(path, fields, found.update_time)])
                return Snapshot(path, fields)
            except Conflict:
                pass  # somebody else took it over in this moment: it is being worked on
        detail = "a request with this Idempotency-Key is still in progress: retry later to get its response"
        return Refusal(409, "request_in_progress", detail, retryable=True).response()


def _replay_response(data: Any) -> Response:
    if data.get("content") is None:
        detail = "this request was executed, but its response was too large to store"
        return Refusal(409, "answer_not_kept", detail).response()
    headers = {**data.get("headers", {}), "Idempotency-Replayed": "true"}
    return Response(data["content"], data["status"], headers)


def _key(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] not in METHODS:
        return None
    found = [value.decode("latin-1").strip() for name, value in scope["headers"] if name == b"idempotency-key"]
    return found[0] if found else None


def _fingerprint(scope: Scope, body: bytes) -> str:
    """The same for the same work: method, path and query, and the body, in any order of its keys."""
    try:
        text = json.dumps(json.loads(body), sort_keys=True).encode() if body else b""
    except ValueError:
        text = body
    condition = [value for name, value in scope["headers"] if name == b"if-match"]
    parts = (scope["method"].encode(), scope["path"].encode(), scope["query_string"], *condition, text)
    return hashlib.sha256(b"\n".join(parts)).hexdigest()


def _again(first: Message, receive: Receive) -> Receive:
    """The message that was read, then what comes after it."""
    held = [first]

    async def given() -> Message:
        return held.pop() if held else await receive()

    return given
