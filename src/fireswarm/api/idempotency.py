"""Execute requests with an ``Idempotency-Key`` once; a repetition gets the stored response.

A document in ``api_requests`` claims the key before the work begins, so it works across processes. A response of
500 or more releases the claim: such a request can be repeated.
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
from fireswarm.client import Swarm
from fireswarm.contracts.base import as_utc
from fireswarm.contracts.ports import Create, Delete, Snapshot, Update
from fireswarm.errors import Conflict, FireswarmError
from fireswarm.redaction import Redactor
from fireswarm.storage.documents.paths import REQUESTS
from fireswarm.storage.documents.read import shows

KEEP_SECONDS = 24 * 3600.0
CLAIM_SECONDS = 90.0
"""A claim without a response is taken over after this time, since its process must have died.

Longer than a request may wait for its task.
"""

MAX_KEY_CHARS = 200
MAX_KEPT_BYTES = 700_000
"""Maximum size of a stored response; a document holds 1 MiB."""

KEPT_HEADERS = ("content-type", "location", "etag")
METHODS = frozenset({"POST", "PATCH", "DELETE"})

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Answer:
    """A response that is captured while it is sent."""

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
        """Send the captured response."""
        await self.send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await self.send({"type": "http.response.body", "body": bytes(self.body)})

    def to_document(self) -> dict[str, Any]:
        """Return the response as a document."""
        named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.headers}
        content = self.body.decode("utf-8", "replace") if len(self.body) <= MAX_KEPT_BYTES else None
        return {
            "status": self.status,
            "headers": {name: named[name] for name in KEPT_HEADERS if name in named},
            "content": content,
        }


@dataclass(frozen=True, slots=True)
class Once:
    """ASGI middleware inside the gate: bodies are complete and limited in size here."""

    app: FastAPI
    swarm: Swarm
    redactor: Redactor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Execute a request, or return its stored response."""
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
        finally:  # the server has already answered and logged what the application raises
            if answer.status:
                await self._keep(claimed.path, answer)
                await answer.release()

    async def _keep(self, path: str, answer: _Answer) -> None:
        """Store the response, or release the claim. If the store is unreachable, the claim expires by itself."""
        failed = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        try:
            await self.swarm.parts.store.commit([Delete(path) if failed else Update(path, answer.to_document())])
        except FireswarmError as error:
            logger.warning("cannot store the response for its Idempotency-Key: %s", error)

    async def _claim(self, key: str, fingerprint: str) -> Snapshot | Response:
        """Return the claim, or the response to send instead."""
        swarm = self.swarm
        now = swarm.parts.clock.now()
        path = f"{REQUESTS}/{hashlib.sha256(f'{swarm.session}\n{key}'.encode()).hexdigest()[:40]}"
        fields = {
            "session_hash": swarm.session,
            "fingerprint": fingerprint,
            "status": 0,
            "claimed_at": now,
            "expires_at": now + timedelta(seconds=KEEP_SECONDS),
        }
        try:
            await swarm.parts.store.commit([Create(path, fields)])
            return Snapshot(path, fields)
        except Conflict as conflict:
            snapshot = await swarm.parts.store.get(path)
            if conflict.ambiguous and shows(snapshot.data, fields):
                return Snapshot(path, fields)
        data = snapshot.data or {}
        expired = data and as_utc(data["expires_at"]) <= now
        if data and not expired and data.get("fingerprint") != fingerprint:
            detail = "this Idempotency-Key was used for a different request: use a new key"
            return Refusal(422, "idempotency_key_reused", detail).response()
        if data and not expired and data["status"]:
            return _replay_response(data)
        stale = data and as_utc(data["claimed_at"]) + timedelta(seconds=CLAIM_SECONDS) <= now
        if expired or stale:
            try:
                await swarm.parts.store.commit([Update(path, fields, snapshot.update_time)])
                return Snapshot(path, fields)
            except Conflict as conflict:  # another process has just taken it over: the request is in progress
                if conflict.ambiguous and shows((await swarm.parts.store.get(path)).data, fields):
                    return Snapshot(path, fields)
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
    keys = [value.decode("latin-1").strip() for name, value in scope["headers"] if name == b"idempotency-key"]
    return keys[0] if keys else None


def _fingerprint(scope: Scope, body: bytes) -> str:
    """Hash a request: method, path, query and the body with its keys in any order."""
    try:
        text = json.dumps(json.loads(body), sort_keys=True).encode() if body else b""
    except (ValueError, RecursionError):
        text = body
    condition = [value for name, value in scope["headers"] if name == b"if-match"]
    parts = (scope["method"].encode(), scope["path"].encode(), scope["query_string"], *condition, text)
    return hashlib.sha256(b"\n".join(parts)).hexdigest()


def _again(first: Message, receive: Receive) -> Receive:
    """Return a receiver that yields the first message again, then the following ones."""
    pending = [first]

    async def replay_body() -> Message:
        return pending.pop() if pending else await receive()

    return replay_body
