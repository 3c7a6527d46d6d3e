"""The ports on one page: what the core needs from the world. Adapters are named in ``app`` only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Protocol

import anyio

from fireswarm.contracts.event import EventType
from fireswarm.contracts.llm import ChatRequest, ChatResponse


class Sentinel(Enum):
    """Values that only the store can fill in."""

    SERVER_TIME = "server_time"
    """The commit's own time."""
    DELETE_FIELD = "delete_field"
    """Remove the field."""


SERVER_TIME = Sentinel.SERVER_TIME
DELETE_FIELD = Sentinel.DELETE_FIELD


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One document as the store had it; ``data`` is None where there is no document."""

    path: str
    data: Mapping[str, Any] | None
    update_time: Any = None
    create_time: datetime | None = None

    @property
    def id(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Create:
    """Write a document that must not exist yet."""

    path: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Update:
    """Replace the named top-level fields of an existing document and leave all others alone.

    A map given as a value is replaced whole. ``if_update_time`` is the version it must still have.
    """

    path: str
    data: Mapping[str, Any]
    if_update_time: Any = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Like Update, but creates the document when it is missing."""

    path: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a document; a missing one is fine."""

    path: str


Write = Create | Update | Merge | Delete
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not-in", "array_contains", "array_contains_any"]


@dataclass(frozen=True, slots=True)
class Query:
    """A query over one collection; every one that the code makes is listed in ``queries.py``."""

    collection: str
    where: tuple[tuple[str, Operator, Any], ...] = ()
    order_by: tuple[tuple[str, Literal["asc", "desc"]], ...] = ()
    limit: int | None = None
    start_after: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Usage:
    """Operations as Firestore bills them, counted where they are made."""

    reads: int = 0
    writes: int = 0
    deletes: int = 0

    def minus(self, earlier: Usage) -> Usage:
        """Return what was used since *earlier*."""
        return Usage(self.reads - earlier.reads, self.writes - earlier.writes, self.deletes - earlier.deletes)

    def copy(self) -> Usage:
        """Return the counts as they stand."""
        return Usage(self.reads, self.writes, self.deletes)


@dataclass(frozen=True, slots=True)
class Committed:
    """An applied commit: its time, and each write's resulting version in order."""

    commit_time: datetime
    update_times: tuple[Any, ...] = field(default=())


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
    def spent(self, usage: Mapping[str, Any]) -> None: ...
    async def step(
        self, name: str, run: Callable[[], Awaitable[dict[str, Any]]], *, idempotent: bool
    ) -> dict[str, Any]: ...
    def body(self, name: str, content: str) -> None: ...
