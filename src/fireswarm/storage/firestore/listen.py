"""Listen to a query with the async client, which has no ``on_snapshot``."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
from google.api_core import exceptions as google
from google.cloud.firestore_v1.types import ListenRequest, TargetChange

from fireswarm.contracts.ports import Snapshot, Usage
from fireswarm.errors import StoreUnavailable
from fireswarm.storage.firestore import codec
from fireswarm.storage.firestore.channel import Channel
from fireswarm.storage.firestore.errors import TRANSIENT, translate, translate_cancellation

TARGET_ID = 1
RECONNECT_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses before a broken stream is reopened, with 50 % jitter. Meanwhile, sweeps find the changes."""

RETRYABLE = (*TRANSIENT, StoreUnavailable, google.ResourceExhausted, google.Aborted)


class _Result:
    """The query's result so far."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self.documents: dict[str, Snapshot] = {}
        self.current = False
        self.resume_token = b""
        self._changed = True

    def take(self, response: Any) -> bool:
        """Apply one message; returns True if it completes a consistent snapshot with changes."""
        kind = response.WhichOneof("response_type")
        if kind == "target_change":
            return self._target_change(response.target_change)
        if kind == "document_change":
            self._document_change(response.document_change)
        elif kind == "document_delete":
            self._drop(response.document_delete.document)
        elif kind == "document_remove":
            self._drop(response.document_remove.document)
        elif kind == "filter" and response.filter.count != len(self.documents):
            self.restart()
            raise google.Aborted("the listener's result differs from the server's count: restarting the listener")
        return False

    def restart(self) -> None:
        """Discard the result: the next stream starts from the beginning."""
        self.documents.clear()
        self.current = False
        self.resume_token = b""
        self._changed = True

    def _target_change(self, change: Any) -> bool:
        """Apply a target change; returns True for a new consistent snapshot."""
        kinds = TargetChange.TargetChangeType
        if change.resume_token:
            self.resume_token = change.resume_token
        if change.target_change_type == kinds.REMOVE:
            raise google.from_grpc_status(
                change.cause.code or 14, change.cause.message or "the server closed the listener"
            )
        if change.target_change_type == kinds.RESET:
            self.restart()
        elif change.target_change_type == kinds.CURRENT:
            self.current = True
        at_a_point_in_time = change.HasField("read_time") and not change.target_ids
        consistent = change.target_change_type == kinds.NO_CHANGE and at_a_point_in_time
        if not (consistent and self.current and self._changed):
            return False
        self._changed = False
        return True

    def _document_change(self, change: Any) -> None:
        if TARGET_ID in change.removed_target_ids:
            self._drop(change.document.name)
        if TARGET_ID in change.target_ids:
            self._usage.reads += 1
            self.documents[change.document.name] = codec.snapshot(change.document)
            self._changed = True

    def _drop(self, name: str) -> None:
        if self.documents.pop(name, None) is not None:
            self._changed = True


class _Stream:
    """One listening query, reopened with its resume token when the stream breaks."""

    def __init__(self, channel: Channel, query: Any, usage: Usage) -> None:
        self._channel = channel
        self._query = query
        self._usage = usage
        self._closing = anyio.Event()

    async def _requests(self, resume_token: bytes) -> AsyncGenerator[ListenRequest]:
        request: Any = ListenRequest.pb(ListenRequest())
        request.database = self._channel.database
        request.add_target.target_id = TARGET_ID
        request.add_target.query.parent = self._channel.root
        request.add_target.query.structured_query.CopyFrom(self._query)
        if resume_token:
            request.add_target.resume_token = resume_token
        yield ListenRequest.wrap(request)
        await self._closing.wait()

    async def snapshots(self) -> AsyncGenerator[list[Snapshot]]:
        """Yield the full result, first and after every change, until the consumer stops."""
        result = _Result(self._usage)
        self._usage.reads += 1  # a query is billed at least one read, even without results
        failures = 0
        while True:
            try:
                async with translate_cancellation("listening to a query"):
                    # Without a retry of the client: it would send the rest of the requests, which lack the target.
                    stream = await self._channel.api.listen(
                        requests=self._requests(result.resume_token), metadata=self._channel.metadata, retry=None
                    )
                    async for response in stream:
                        if response is None:  # gRPC could not parse a message: continue from the last resume token
                            break
                        failures = 0
                        if result.take(type(response).pb(response)):
                            yield list(result.documents.values())
            except RETRYABLE:
                if not result.current:
                    result.restart()
            except google.GoogleAPICallError as error:
                raise translate(error, "listening to a query") from error
            pause = RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)]
            failures += 1
            await anyio.sleep(pause * random.uniform(0.5, 1.0))

    def close(self) -> None:
        """End the request generator, which half-closes the stream."""
        self._closing.set()


@contextlib.asynccontextmanager
async def listening(channel: Channel, query: Any, usage: Usage) -> AsyncGenerator[AsyncIterator[list[Snapshot]]]:
    """Open a listener on *query*. Leaving the block closes it and stops counting reads."""
    stream = _Stream(channel, query, usage)
    snapshots = stream.snapshots()
    try:
        yield snapshots
    finally:
        stream.close()
        await snapshots.aclose()
