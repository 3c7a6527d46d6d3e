"""Listen: streams of changes to documents and queries.

The hub receives every commit and finds the targets registered for its documents, collections and collection groups, so
other listeners cost a commit nothing. A stream's outbox is filled within the commit. A stream therefore always sends
the consistent state of its read_time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress

from firelite.documents.fields import project
from firelite.documents.paths import FieldPath
from firelite.documents.protos import (
    ListenResponse,
    MessagePb,
    Status,
    TargetChangeType,
    TargetPb,
    micros_of,
    set_time,
)
from firelite.documents.record import Record
from firelite.errors import FireliteError, InvalidArgument, Unavailable
from firelite.listen.targets import DocumentsTarget, Events, QueryTarget, Target
from firelite.listen.tokens import make_token, resumable_us
from firelite.query.filter_rules import check_listenable
from firelite.query.parse import parse_query
from firelite.query.planner import IndexHome
from firelite.query.query import Query
from firelite.query.slices import SMALL_DOCUMENTS, STEP_DOCUMENTS, in_slices, pause
from firelite.status import CODES
from firelite.storage.clock import CommitClock
from firelite.storage.group_commit import CommitGroup
from firelite.storage.versions import Change, Store, homes_of

# Clients close a silent stream after a while (the Node.js client: 120 s) and open a new one.
HEARTBEAT_SECONDS = 30.0
# Beyond this backlog, resuming the client is cheaper than storing the messages.
BACKLOG_MAX_MESSAGES = 100_000


class WatchHub:
    """All listening streams of a database.

    ``check_query`` raises FireliteError for a query that is not allowed.
    """

    def __init__(
        self, store: Store, group: CommitGroup, clock: CommitClock, check_query: Callable[[Query], None]
    ) -> None:
        """Set up an empty hub that receives the commits of *group*."""
        self.store = store
        self.group = group
        self.clock = clock
        self.check_query = check_query
        self._closed = False
        self._filed: dict[IndexHome, dict[tuple[ListenStream, int], Target]] = {}
        self._streams: dict[ListenStream, None] = {}
        group.listeners.append(self._publish)

    def attach(self, stream: ListenStream) -> None:
        """Register an open stream. Raises Unavailable after ``close``."""
        if self._closed:
            raise Unavailable("The database is closed.")
        self._streams[stream] = None

    def detach(self, stream: ListenStream) -> None:
        """Remove a stream that ended."""
        self._streams.pop(stream, None)

    def file(self, stream: ListenStream, target_id: int, target: Target) -> None:
        """Register a target for all commits from now on."""
        for home in target.homes:
            self._filed.setdefault(home, {})[stream, target_id] = target

    def unfile(self, stream: ListenStream, target_id: int, target: Target) -> None:
        """Unregister a target."""
        for home in target.homes:
            filed = self._filed[home]
            filed.pop((stream, target_id), None)
            if not filed:
                del self._filed[home]

    def _publish(self, changes: Sequence[Change], commit_us: int) -> None:
        """Pass the changes of a commit to the streams with affected targets."""
        if not self._filed:
            return
        touched: dict[ListenStream, dict[int, tuple[Target, list[Change]]]] = {}
        for change in changes:
            for home in (("document", change.new.name), *homes_of(change.new.collection)):
                for (stream, target_id), target in self._filed.get(home, {}).items():
                    targets = touched.setdefault(stream, {})
                    targets.setdefault(target_id, (target, []))[1].append(change)
        for stream, targets in touched.items():
            stream.publish(targets, commit_us)

    def close(self) -> None:
        """End all streams, because the database closes."""
        self._closed = True
        for stream in list(self._streams):
            stream.fail(Unavailable("The database was closed."))


class ListenStream:
    """One Listen call: its targets and unsent messages."""

    def __init__(self, hub: WatchHub) -> None:
        self._hub = hub
        self._targets: dict[int, Target] = {}
        self._outbox: deque[MessagePb | Iterator[MessagePb]] = deque()
        self._ready = asyncio.Event()
        self._failure: FireliteError | None = None
        self._ended = False
        self._next_id = 1

    async def responses(self, requests: AsyncIterator[MessagePb]) -> AsyncGenerator[MessagePb]:
        """Serve the requests until the client ends. Raises the FireliteError that ended the stream."""
        self._hub.attach(self)
        reader = asyncio.create_task(self._read(requests))
        try:
            while True:
                while self._outbox:
                    response = self._outbox.popleft()
                    if not isinstance(response, Iterator):
                        yield response
                        continue
                    for number, made in enumerate(response, start=1):
                        if number % STEP_DOCUMENTS == 0:
                            await pause()
                        yield made
                if self._failure is not None:
                    raise self._failure
                if self._ended:
                    return
                self._ready.clear()
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await self._ready.wait()
                except TimeoutError:
                    self._snapshot(self._hub.clock.now())
        finally:
            reader.cancel()
            self._hub.detach(self)
            for target_id in list(self._targets):
                self._drop(target_id)

    async def _read(self, requests: AsyncIterator[MessagePb]) -> None:
        try:
            async for request in requests:
                self.handle(request, await self._prepare(request))
        except FireliteError as error:
            self.fail(error)
        finally:
            self._ended = True
            self._ready.set()

    async def _prepare(self, request: MessagePb) -> QueryTarget | None:
        """Return the target of a large query, its result read while other requests are served; otherwise None."""
        if request.add_target.WhichOneof("target_type") != "query":
            return None
        with suppress(FireliteError):  # `handle` reports it
            target = self._make_target(request.add_target)
            if isinstance(target, QueryTarget) and not self._hub.store.is_small(target.query):
                self._hub.group.flush()
                await in_slices(target.read_steps(self._hub.store, self._hub.clock.now()))
                return target
        return None

    def fail(self, error: FireliteError) -> None:
        """End the stream with an error, after the unsent messages."""
        self._failure = self._failure or error
        self._ready.set()

    def handle(self, request: MessagePb, prepared: QueryTarget | None = None) -> None:
        """Add or remove a target. An invalid target is removed with the reason, and the stream continues.

        *prepared* is the target to add if it was made already.
        """
        kind = request.WhichOneof("target_change")
        if kind == "add_target":
            self._add(request.add_target, prepared)
        elif kind == "remove_target":
            self._drop(request.remove_target)
            self._send_target(TargetChangeType.REMOVE, request.remove_target)
        else:
            raise InvalidArgument("A ListenRequest must add or remove a target.")

    def _add(self, message: TargetPb, prepared: QueryTarget | None) -> None:
        """Add a target: send its initial state, then register it unless it is a one-time target."""
        target_id = message.target_id or self._free_id()
        if target_id in self._targets:
            raise InvalidArgument(f"Target {target_id} is already in use on this stream.")
        try:
            target = prepared or self._make_target(message)
        except FireliteError as error:
            removal = self._target_change(TargetChangeType.REMOVE, [target_id], None)
            removal.target_change.cause.CopyFrom(Status(code=CODES[error.code], message=error.message))
            self._push(removal)
            return
        self._send_target(TargetChangeType.ADD, target_id)
        self._hub.group.flush()
        resume_us = self._resume_us(message)
        if resume_us is None and (message.resume_token or message.HasField("read_time")):
            self._send_target(TargetChangeType.RESET, target_id)
        events = target.open(self._hub.store, resume_us)
        read_us = self._hub.clock.now()
        self._targets[target_id] = target
        self._send_opening(target_id, target, events, read_us)
        self._send_target(TargetChangeType.CURRENT, target_id, read_us)
        self._snapshot(read_us)
        if message.once:
            del self._targets[target_id]
            self._send_target(TargetChangeType.REMOVE, target_id)
        else:
            self._hub.file(self, target_id, target)

    def _make_target(self, message: TargetPb) -> Target:
        kind = message.WhichOneof("target_type")
        if kind == "documents":
            return DocumentsTarget(message.documents.documents)
        if kind != "query":
            raise InvalidArgument("A target must name documents or a query.")
        query = parse_query(message.query.parent, message.query.structured_query)
        check_listenable(query.scope)
        self._hub.check_query(query)
        return QueryTarget(query)

    def _resume_us(self, message: TargetPb) -> int | None:
        """Return the time from which the client's state can be continued; None if it must start over."""
        if message.WhichOneof("resume_type") != "read_time":
            return resumable_us(self._hub.store, message.resume_token)
        read_us = micros_of(message.read_time)
        return read_us if self._hub.store.horizon_us <= read_us <= self._hub.clock.now() else None

    def _free_id(self) -> int:
        while self._next_id in self._targets:
            self._next_id += 1
        return self._next_id

    def _drop(self, target_id: int) -> None:
        target = self._targets.pop(target_id, None)
        if target is not None:
            self._hub.unfile(self, target_id, target)

    def publish(self, touched: dict[int, tuple[Target, list[Change]]], commit_us: int) -> None:
        """Send a commit's changes of the affected targets."""
        if self._failure is not None:
            return
        if len(self._outbox) > BACKLOG_MAX_MESSAGES:
            self._outbox.clear()
            self.fail(Unavailable("The listener fell too far behind; resume it."))
            return
        store = self._hub.store
        events = {target_id: target.update(store, changes) for target_id, (target, changes) in touched.items()}
        if any(events.values()):
            self._send_events(events, commit_us)
            self._snapshot(commit_us)

    def _send_opening(self, target_id: int, target: Target, events: Events, read_us: int) -> None:
        """Send the initial documents of a target. If there are many, their messages are made when they are sent."""
        if len(events) <= SMALL_DOCUMENTS:
            self._send_events({target_id: events}, read_us)
            return
        self._send_events({target_id: {name: None for name, record in events.items() if record is None}}, read_us)
        found = (record for record in events.values() if record is not None)
        self._push(_make_change(record, target_id, _projection(target)) for record in found)

    def _send_events(self, events: dict[int, Events], read_us: int) -> None:
        """Send one message per document, for all targets together."""
        documents: dict[str, tuple[Record | None, list[int], list[int]]] = {}
        for target_id, changed in sorted(events.items()):
            for name, record in changed.items():
                shown, present, gone = documents.get(name, (None, [], []))
                (gone if record is None else present).append(target_id)
                documents[name] = (record or shown, present, gone)
        for name, (record, present, gone) in documents.items():
            self._push(self._document_message(name, record, present, gone, read_us))

    def _document_message(
        self, name: str, record: Record | None, present: list[int], gone: list[int], read_us: int
    ) -> MessagePb:
        """Return the message about one document: changed, deleted or removed from targets."""
        # A document that left a query but still exists is sent with its new content, as in production.
        record = record or self._hub.store.get(name)
        response = ListenResponse()
        if record is None:
            response.document_delete.document = name
            response.document_delete.removed_target_ids.extend(gone)
            set_time(response.document_delete.read_time, read_us)
            return response
        only = self._targets.get(present[0]) if len(present) == 1 else None
        _set_document(response, record, None if only is None else _projection(only))
        response.document_change.target_ids.extend(present)
        response.document_change.removed_target_ids.extend(gone)
        return response

    def _send_target(self, kind: TargetChangeType, target_id: int, read_us: int | None = None) -> None:
        self._push(self._target_change(kind, [target_id], read_us))

    def _snapshot(self, read_us: int) -> None:
        """Send a message that the state so far is that of ``read_us``."""
        if self._targets:
            self._push(self._target_change(TargetChangeType.NO_CHANGE, [], read_us))

    def _target_change(self, kind: TargetChangeType, target_ids: list[int], read_us: int | None) -> MessagePb:
        response = ListenResponse()
        response.target_change.target_change_type = kind
        response.target_change.target_ids.extend(target_ids)
        if read_us is not None:
            set_time(response.target_change.read_time, read_us)
            response.target_change.resume_token = make_token(self._hub.store, read_us)
        return response

    def _push(self, response: MessagePb | Iterator[MessagePb]) -> None:
        self._outbox.append(response)
        self._ready.set()


def _projection(target: Target) -> Sequence[FieldPath] | None:
    return target.query.projection if isinstance(target, QueryTarget) else None


def _make_change(record: Record, target_id: int, projection: Sequence[FieldPath] | None) -> MessagePb:
    """Return the message about a document of a target."""
    response = ListenResponse()
    _set_document(response, record, projection)
    response.document_change.target_ids.append(target_id)
    return response


def _set_document(response: MessagePb, record: Record, projection: Sequence[FieldPath] | None) -> None:
    document = response.document_change.document
    if projection is None:
        document.MergeFromString(record.data)
    else:
        document.CopyFrom(project(record.data or b"", projection))
