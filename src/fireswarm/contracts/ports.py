"""The ports on one page: the interfaces that the core needs. Only ``swarm.opening`` imports adapters of the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import anyio

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, TokenUsage
from fireswarm.contracts.skills.context import Conversation, ConversationChange
from fireswarm.contracts.store import (
    DELETE_FIELD,
    NAME,
    SERVER_TIME,
    Committed,
    Create,
    Delete,
    Explained,
    Merge,
    Nearest,
    Operator,
    Query,
    Sentinel,
    Snapshot,
    Update,
    Usage,
    Write,
    vector_value,
)
from fireswarm.contracts.swarm.event import EventType

__all__ = [
    "Blobs",
    "ChatModel",
    "Clock",
    "ConversationStore",
    "MigratedStore",
    "Recorder",
    "SkillTerms",
    "StepSink",
    "Store",
    "PendingWrites",
    "DELETE_FIELD",
    "NAME",
    "SERVER_TIME",
    "Committed",
    "Create",
    "Delete",
    "Embedded",
    "Embedder",
    "Merge",
    "Explained",
    "Nearest",
    "Operator",
    "Query",
    "Sentinel",
    "Snapshot",
    "Update",
    "Usage",
    "Write",
    "vector_value",
]


class Store(Protocol):
    """Documents. Raises Conflict, StoreUnavailable, StoreFull, IndexMissing, StoreError."""

    usage: Usage

    async def get(self, path: str) -> Snapshot: ...
    async def get_many(self, paths: Sequence[str]) -> list[Snapshot]: ...
    async def query(self, query: Query) -> list[Snapshot]: ...
    async def explain(self, query: Query) -> Explained: ...
    async def count(self, query: Query) -> int: ...
    async def commit(self, writes: Sequence[Write], *, together: bool = False) -> Committed: ...
    def as_stored(self, data: Mapping[str, Any]) -> Mapping[str, Any]: ...
    def listen(self, query: Query) -> AbstractAsyncContextManager[AsyncIterator[list[Snapshot]]]: ...


class Blobs(Protocol):
    """Content too large for a document, by URI. With *anywhere*, also a file that a person named is read.

    ``locate`` finds content whose folder was moved; ``holds`` returns True if a URI is in the store, below *folder*.
    """

    async def put(self, name: str, content: bytes) -> str: ...
    async def put_file(self, name: str, path: Path) -> str: ...
    async def get(self, uri: str, *, anywhere: bool = False) -> bytes: ...
    async def size(self, uri: str, *, anywhere: bool = False) -> int: ...
    async def local_path(self, uri: str) -> Path: ...
    def locate(self, uri: str) -> str: ...
    def holds(self, uri: str, folder: str) -> bool: ...


class ConversationStore(Protocol):
    """Stored conversations. ``apply`` is atomic, and applies a change once for each message id.

    Raises VersionConflict, DuplicateMessage with the earlier response, InvalidInput, StoreError. ``response`` returns
    the response to an earlier message; ``prune`` removes conversations that ended before a time, and returns their
    number.
    """

    async def load(self, context_id: str) -> Conversation | None: ...
    async def apply(self, change: ConversationChange) -> Conversation: ...
    async def response(self, context_id: str, message_id: str) -> JsonObject | None: ...
    async def prune(self, before: datetime) -> int: ...
    async def close(self) -> None: ...


@runtime_checkable
class MigratedStore(ConversationStore, Protocol):
    """A store with tables: ``migrate`` creates or extends them, and returns the number of new steps."""

    async def migrate(self) -> int: ...


class Clock(Protocol):
    """The server's time, and waits that a test can shorten."""

    def now(self) -> datetime: ...
    def observe(self, server_time: datetime) -> None: ...
    async def sleep(self, seconds: float) -> None: ...
    async def wait(self, event: anyio.Event, seconds: float | None) -> bool: ...


class ChatModel(Protocol):
    """A model. ``complete`` raises ModelUnavailable (transient) or ModelRejected, and never retries by itself.

    ``on_text`` is called with each piece of the answer as it arrives. ``on_broken`` is called before an error or a
    cancellation that interrupts a streamed answer, with the billed usage; tokens that are not counted yet are
    estimated. ``count_tokens`` returns None if the provider does not count tokens. ``knows_schema`` is true if the
    provider can enforce a JSON Schema, ``knows_tools`` if the model can call tools; ``preview`` returns the request as
    it would be sent.
    """

    provider: str
    name: str
    knows_schema: bool
    knows_tools: bool

    async def complete(
        self,
        request: ChatRequest,
        on_text: Callable[[str], None] | None = None,
        on_broken: Callable[[TokenUsage], None] | None = None,
    ) -> ChatResponse: ...
    async def count_tokens(self, request: ChatRequest) -> int | None: ...
    def preview(self, request: ChatRequest) -> dict[str, Any]: ...


class Embedded(NamedTuple):
    """Vectors in the order of their texts, and the tokens that are billed for them."""

    vectors: Sequence[tuple[float, ...]]
    tokens: int


class Embedder(Protocol):
    """An embedding model. ``name`` is the model's name; its vectors have ``dimensions`` numbers."""

    @property
    def name(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    async def embed(self, texts: Sequence[str], *, is_query: bool) -> Embedded:
        """Return a vector for each text. Raises ModelUnavailable and ModelRejected."""
        ...


class PendingWrites(Protocol):
    """Writes that are included in a journal's commits, in addition to its events.

    ``stored`` is called with the writes that are known to be durable; until then ``writes`` returns them again.
    """

    def writes(self) -> Sequence[Write]: ...
    def mark_stored(self, writes: Sequence[Write]) -> None: ...


class Recorder(Protocol):
    """Records a run. A ``step`` that has finished before is not run again.

    ``has_begun`` returns True for a step that an earlier start finished or may have executed; such a step is not
    executed again. ``earlier_kinds`` returns the kinds of records (act, ask, denied, left) of one call of the model.
    ``follows`` is true if somebody watches the streamed text. ``keep`` stores a text that is too long to be shown, and
    returns its path or URI.
    """

    @property
    def run_id(self) -> str: ...
    @property
    def follows(self) -> bool: ...
    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None: ...
    def words(self, text: str) -> None: ...
    def record_usage(self, usage: Mapping[str, Any]) -> None: ...
    def has_begun(self, name: str) -> bool: ...
    def earlier_kinds(self, call: str) -> frozenset[str]: ...
    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[dict[str, Any]]],
        *,
        idempotent: bool,
        skipped: dict[str, Any] | None = None,
    ) -> dict[str, Any]: ...
    def body(self, name: str, content: str) -> None: ...
    async def keep(self, name: str, text: str) -> str: ...


class StepSink(Protocol):
    """Storage of the steps of a run.

    ``note_step`` adds a record without a result. ``begin_step`` returns once the start of a step that must not be
    repeated is stored. While ``may_start`` is false, ``renew`` renews the right to work, or raises. ``finish_step``
    stores a result and returns it in the stored form; with *last*, the sink may store it later. ``load_result`` returns
    a stored result. ``doubt`` returns the result of a step that may or may not have finished, or raises.
    """

    @property
    def may_start(self) -> bool: ...
    def note_step(self, kind: str, step: str, **more: Any) -> None: ...
    def fail_step(self, step: str, error: Exception) -> None: ...
    async def begin_step(self, step: str) -> None: ...
    def renew(self) -> Awaitable[None]: ...
    async def finish_step(self, step: str, result: Any, *, last: bool) -> Any: ...
    async def load_result(self, kept: Any) -> Any: ...
    async def doubt(self, step: str, skipped: Any) -> Any: ...


class SkillTerms(Protocol):
    """The terms on which a skill may act: its allowed tools, its folder, and facts about its code."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def allowed_tools(self) -> tuple[str, ...]: ...
    @property
    def outside(self) -> tuple[str, ...]: ...
    @property
    def writes(self) -> bool: ...
    @property
    def respects_read_only(self) -> bool: ...
    @property
    def is_material(self) -> bool: ...
