"""The ports on one page: what the core needs from the world. Adapters are named in ``app`` only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import anyio

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse
from fireswarm.contracts.skills.context import Conversation, ConversationChange
from fireswarm.contracts.skills.sandbox import SandboxLimits, SandboxRun
from fireswarm.contracts.store import (
    DELETE_FIELD,
    NAME,
    SERVER_TIME,
    Committed,
    Create,
    Delete,
    Merge,
    Operator,
    Query,
    Sentinel,
    Snapshot,
    Update,
    Usage,
    Write,
)
from fireswarm.contracts.swarm.event import EventType

__all__ = [
    "Blobs",
    "ChatModel",
    "Clock",
    "ConversationStore",
    "Recorder",
    "Sandbox",
    "Store",
    "PendingWrites",
    "DELETE_FIELD",
    "NAME",
    "SERVER_TIME",
    "Committed",
    "Create",
    "Delete",
    "Merge",
    "Operator",
    "Query",
    "Sentinel",
    "Snapshot",
    "Update",
    "Usage",
    "Write",
]


class Store(Protocol):
    """Documents. Raises Conflict, StoreUnavailable, StoreFull, IndexMissing, StoreError."""

    usage: Usage

    async def get(self, path: str) -> Snapshot: ...
    async def get_many(self, paths: Sequence[str]) -> list[Snapshot]: ...
    async def query(self, query: Query) -> list[Snapshot]: ...
    async def count(self, query: Query) -> int: ...
    async def commit(self, writes: Sequence[Write]) -> Committed: ...
    def listen(self, query: Query) -> AbstractAsyncContextManager[AsyncIterator[list[Snapshot]]]: ...


class Blobs(Protocol):
    """Content too large for a document, by URI."""

    async def put(self, name: str, content: bytes) -> str: ...
    async def put_file(self, name: str, path: Path) -> str: ...
    async def get(self, uri: str) -> bytes: ...
    async def local_path(self, uri: str) -> Path: ...


class ConversationStore(Protocol):
    """Conversations. ``apply`` changes one whole or not at all, and once for each message id.

    Raises VersionConflict, DuplicateMessage with the answer of the first time, InvalidInput, StoreError.
    ``response`` is that answer; ``prune`` removes conversations that ended before a time, and says how many.
    """

    async def load(self, context_id: str) -> Conversation | None: ...
    async def apply(self, change: ConversationChange) -> Conversation: ...
    async def response(self, context_id: str, message_id: str) -> JsonObject | None: ...
    async def prune(self, before: datetime) -> int: ...
    async def close(self) -> None: ...


class Clock(Protocol):
    """Time as the server has it, and waiting that a test can shorten."""

    def now(self) -> datetime: ...
    def observe(self, server_time: datetime) -> None: ...
    async def sleep(self, seconds: float) -> None: ...
    async def wait(self, event: anyio.Event, seconds: float | None) -> bool: ...


class ChatModel(Protocol):
    """A model. ``complete`` raises ModelUnavailable (try again) or ModelRejected; it never tries again itself.

    ``on_text`` is called with each piece of the answer as it arrives. ``count_tokens`` answers None where the
    provider does not count. ``knows_schema`` says whether it can be held to a JSON Schema by its own means;
    ``preview`` is the request as it would be sent.
    """

    provider: str
    name: str
    knows_schema: bool

    async def complete(self, request: ChatRequest, on_text: Callable[[str], None] | None = None) -> ChatResponse: ...
    async def count_tokens(self, request: ChatRequest) -> int | None: ...
    def preview(self, request: ChatRequest) -> dict[str, Any]: ...


class PendingWrites(Protocol):
    """What a journal's commits carry besides its events.

    ``stored`` hears of the writes that are known to be durable; until then ``writes`` gives them again.
    """

    def writes(self) -> Sequence[Write]: ...
    def mark_stored(self, writes: Sequence[Write]) -> None: ...


class Sandbox(Protocol):
    """Runs code apart from everything but *folder*. Raises SandboxRefused where it cannot be kept in."""

    async def run(
        self, language: str, code: str, folder: Path, limits: SandboxLimits, stdin: str = ""
    ) -> SandboxRun: ...


class Recorder(Protocol):
    """Where a run writes itself down. A ``step`` that is known as finished is not run again.

    ``follows`` says whether somebody reads a model's words while they come: only then is an answer streamed.
    """

    @property
    def run_id(self) -> str: ...
    @property
    def follows(self) -> bool: ...
    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None: ...
    def words(self, text: str) -> None: ...
    def record_usage(self, usage: Mapping[str, Any]) -> None: ...
    async def step(
        self, name: str, run: Callable[[], Awaitable[dict[str, Any]]], *, idempotent: bool
    ) -> dict[str, Any]: ...
    def body(self, name: str, content: str) -> None: ...
