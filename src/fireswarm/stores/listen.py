"""Follow a query with the async client, which has no ``on_snapshot`` of its own.

The one module here that uses the official client's private names (``_firestore_api``, ``_rpc_metadata``,
``_to_protobuf``, ``_helpers``); the listener tests hold it to them.
"""

# pyright: reportPrivateUsage=false
# The public async client cannot listen (its on_snapshot raises); these names are what its sync sibling uses.

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
from google.api_core import exceptions as google
from google.cloud.firestore_v1 import AsyncClient
from google.cloud.firestore_v1 import _helpers as client_helpers
from google.cloud.firestore_v1.types import ListenRequest, ListenResponse, Target, TargetChange

from fireswarm.ports import Snapshot, Usage
from fireswarm.stores.errors import TRANSIENT, translate

TARGET_ID = 1
RECONNECT_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before a broken stream is opened again; jittered by half. The sweep covers the gap meanwhile."""

RETRYABLE = (*TRANSIENT, google.Cancelled, google.ResourceExhausted, google.Aborted)


class _Result:
    """The query's result as the stream has told it so far."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self.documents: dict[str, Snapshot] = {}
        self.current = False
        self.resume_token = b""
        self._changed = True

    def take(self, response: ListenResponse) -> bool:
        """Apply one message; true when it completes a consistent snapshot that differs from the last."""
        kind = response._pb.WhichOneof("response_type")
        if kind == "target_change":
            return self._target_change(response.target_change)
        if kind == "document_change":
            self._document_change(response.document_change)
        elif kind == "document_delete":
            self._drop(response.document_delete.document)
        elif kind == "document_remove":
            self._drop(response.document_remove.document)
        elif kind == "filter" and response.filter.count != len(self.documents):
            raise google.Aborted("the listener's result differs from the server's count: listening anew")
        return False

    def _target_change(self, change: TargetChange) -> bool:
        kinds = TargetChange.TargetChangeType
        if change.resume_token:
            self.resume_token = change.resume_token
        if change.target_change_type == kinds.REMOVE:
            raise google.from_grpc_status(
                change.cause.code or 14, change.cause.message or "the store ended the listener"
            )
        if change.target_change_type == kinds.RESET:
            self.documents.clear()
            self.current = False
            self._changed = True
        elif change.target_change_type == kinds.CURRENT:
            self.current = True
        consistent = change.target_change_type == kinds.NO_CHANGE and change.read_time and not change.target_ids
        if not (consistent and self.current and self._changed):
            return False
        self._changed = False
        return True

    def _document_change(self, change: Any) -> None:
        document = change.document
        if TARGET_ID in change.removed_target_ids:
            self._drop(document.name)
        if TARGET_ID in change.target_ids:
            self._usage.reads += 1
            path = document.name.split("/documents/", 1)[1]
            data = client_helpers.decode_dict(document.fields, None)
            self.documents[document.name] = Snapshot(path, data, document.update_time, document.create_time)
            self._changed = True

    def _drop(self, name: str) -> None:
        if self.documents.pop(name, None) is not None:
            self._changed = True


class _Stream:
    """One listening query, reopened with its resume token whenever the stream breaks."""

    def __init__(self, client: AsyncClient, query: Any, usage: Usage) -> None:
        self._client = client
        parent, _ = query._parent._parent_info()
        self._target = Target.QueryTarget(parent=parent, structured_query=query._to_protobuf())
        self._usage = usage
        self._closing = anyio.Event()

    async def _requests(self, resume_token: bytes) -> AsyncGenerator[ListenRequest]:
        target = Target(query=self._target, target_id=TARGET_ID)
        if resume_token:
            target.resume_token = resume_token
        yield ListenRequest(database=self._client._database_string, add_target=target)
        await self._closing.wait()

    async def snapshots(self) -> AsyncGenerator[list[Snapshot]]:
        """Yield the whole result, at first and after every change, until the consumer stops."""
        result = _Result(self._usage)
        self._usage.reads += 1  # a query is billed at least one read, also when it finds nothing
        failures = 0
        while True:
            try:
                stream = await self._client._firestore_api.listen(
                    requests=self._requests(result.resume_token), metadata=self._client._rpc_metadata
                )
                async for response in stream:
                    failures = 0
                    if result.take(response):
                        yield list(result.documents.values())
            except RETRYABLE:
                if not result.current:
                    result = _Result(self._usage)
            except google.GoogleAPICallError as error:
                raise translate(error, "listening to a query") from error
            pause = RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)]
            failures += 1
            await anyio.sleep(pause * random.uniform(0.5, 1.0))

    def close(self) -> None:
        """Let the request generator end, which half-closes the stream."""
        self._closing.set()


@contextlib.asynccontextmanager
async def listening(client: AsyncClient, query: Any, usage: Usage) -> AsyncGenerator[AsyncIterator[list[Snapshot]]]:
    """Open a listener on *query*; leaving the block ends it and counts nothing more."""
    stream = _Stream(client, query, usage)
    snapshots = stream.snapshots()
    try:
        yield snapshots
    finally:
        stream.close()
        await snapshots.aclose()
