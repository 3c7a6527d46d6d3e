"""The one store adapter: the Store port over ``google-cloud-firestore``'s async client.

The same code runs on Firestore, on Google's emulator and on firelite; only the client's transport differs.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from google.api_core import exceptions as google
from google.api_core.retry import AsyncRetry, if_exception_type
from google.cloud.firestore_v1 import AsyncClient
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsRequest,
    CommitRequest,
    RunAggregationQueryRequest,
    RunQueryRequest,
    RunQueryResponse,
)
from google.protobuf.json_format import MessageToDict

from fireswarm.contracts.ports import Clock, Committed, Create, Delete, Explained, Query, Snapshot, Usage, Write
from fireswarm.errors import Conflict, FireswarmError, StoreError, StoreUnavailable
from fireswarm.redaction import Redactor
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.spans import record_commit
from fireswarm.storage.documents.paths import FREE_FIELDS, GIVEN_FIELDS
from fireswarm.storage.firestore import codec
from fireswarm.storage.firestore.channel import channel_of
from fireswarm.storage.firestore.errors import (
    NOT_APPLIED,
    TRANSIENT,
    translate,
    translate_cancellation,
    translate_errors,
)
from fireswarm.storage.firestore.listen import listening
from fireswarm.storage.firestore.together import CommonCommits

ATTEMPT_TIMEOUT_SECONDS = 10.0
"""Timeout of one RPC attempt: the client's ``timeout`` limits an attempt, not the call, so the retry is set too.

Half of the shortest renewal interval of the default lease, so that one slow commit does not lose it.
"""

TOTAL_TIMEOUT_SECONDS = 30.0
"""Timeout of all attempts of one read together."""

COMMIT_ATTEMPTS = 4
SENT_AGAIN = (*TRANSIENT, StoreUnavailable, google.ResourceExhausted, google.Aborted)
"""Errors after which a commit is sent again; its preconditions make a second application fail."""

BACKOFF_SECONDS = 0.05
"""First pause between attempts of a commit; doubles each time, with full jitter."""

INDEX_ENTRIES_PER_READ = 1_000
"""Firestore bills an aggregation one read per this many index entries."""

_READ: dict[str, Any] = {
    "retry": AsyncRetry(
        predicate=if_exception_type(*TRANSIENT, google.Aborted),
        initial=0.05,
        maximum=2.0,
        timeout=TOTAL_TIMEOUT_SECONDS,
    ),
    "timeout": ATTEMPT_TIMEOUT_SECONDS,
}


class FirestoreStore:
    """Documents in Firestore. Counts billed operations and translates all errors.

    One instance belongs to one event loop, like the client. *clock* learns the server's time from every read and
    commit. With *redact*, all recognized secrets are removed before sending; all writes pass here, so no caller needs
    to redact.
    """

    def __init__(self, client: AsyncClient, clock: Clock, redact: Redactor | None = None) -> None:
        self._channel = channel_of(client)
        self._clock = clock
        self._redact = redact
        self._common = CommonCommits(self._send)
        self.usage = Usage()

    async def get(self, path: str) -> Snapshot:
        """Read one document; ``data`` is None if it does not exist."""
        return (await self.get_many([path]))[0]

    async def get_many(self, paths: Sequence[str]) -> list[Snapshot]:
        """Read documents in one call, in the given order."""
        if not paths:
            return []
        wanted = list(dict.fromkeys(paths))
        request = BatchGetDocumentsRequest(
            database=self._channel.database, documents=[f"{self._channel.root}/{path}" for path in wanted]
        )
        snapshots: dict[str, Snapshot] = {}
        async with translate_errors(f"reading {_some(wanted)}"):
            stream = await self._channel.api.batch_get_documents(
                request=request, metadata=self._channel.metadata, **_READ
            )
            async for response in stream:
                message = type(response).pb(response)
                self._observe(message)
                if message.WhichOneof("result") == "found":
                    read = codec.snapshot(message.found)
                    snapshots[read.path] = read
        self.usage.reads += len(wanted)
        return [snapshots.get(path) or Snapshot(path, None) for path in paths]

    async def query(self, query: Query, metrics: list[Any] | None = None) -> list[Snapshot]:
        """Run a query; billed at least one read. How it was run is added to *metrics*, if given."""
        request = _query_request(self._channel.parent_of(query.collection), query, self._channel.root)
        if metrics is not None:
            _request_pb(request).explain_options.analyze = True
        snapshots: list[Snapshot] = []
        async with translate_errors(f"querying {query.collection}"):
            stream = await self._channel.api.run_query(request=request, metadata=self._channel.metadata, **_READ)
            async for response in stream:
                message = _query_pb(response)
                self._observe(message)
                if message.HasField("document"):
                    snapshots.append(codec.snapshot(message.document))
                if metrics is not None and message.HasField("explain_metrics"):
                    metrics.append(message.explain_metrics)
        self.usage.reads += max(1, len(snapshots))
        return snapshots

    async def explain(self, query: Query) -> Explained:
        """Run a query, and return how it was run too. Google's emulator explains nothing: no index, no time."""
        metrics: list[Any] = []
        snapshots = await self.query(query, metrics)
        if not metrics:
            return Explained(tuple(snapshots), (), max(1, len(snapshots)), 0.0)
        stats = metrics[-1].execution_stats
        indexes = (MessageToDict(index) for given in metrics for index in given.plan_summary.indexes_used)
        named = (f"{index.get('query_scope', '')} {index.get('properties', '')}".strip() for index in indexes)
        return Explained(
            tuple(snapshots), tuple(named), int(stats.read_operations), stats.execution_duration.ToNanoseconds() / 1e9
        )

    async def count(self, query: Query) -> int:
        """Count a query's results without reading them."""
        message: Any = RunAggregationQueryRequest.pb(RunAggregationQueryRequest())
        message.parent = self._channel.parent_of(query.collection)
        message.structured_aggregation_query.CopyFrom(codec.count_query(query))
        total = 0
        async with translate_errors(f"counting {query.collection}"):
            stream = await self._channel.api.run_aggregation_query(
                request=RunAggregationQueryRequest.wrap(message), metadata=self._channel.metadata, **_READ
            )
            async for response in stream:
                answer = type(response).pb(response)
                if "n" in answer.result.aggregate_fields:
                    total = int(answer.result.aggregate_fields["n"].integer_value)
        self.usage.reads += max(1, math.ceil(total / INDEX_ENTRIES_PER_READ))
        return total

    def listen(self, query: Query) -> AbstractAsyncContextManager[AsyncIterator[list[Snapshot]]]:
        """Listen to a query: the iterator yields its whole result, first and after every change."""
        return listening(self._channel, codec.structured_query(query), self.usage)

    async def commit(self, writes: Sequence[Write], *, together: bool = False) -> Committed:
        """Apply *writes* atomically and durably, or not at all.

        An error after an attempt that may have been applied is marked ``ambiguous``. With *together*, commits that wait
        at the same time share a round trip: for writes that rarely conflict.
        """
        request = self._request(writes)
        if self._redact is not None and self._redact.suspects(_free_values(request)):
            request = self._request([_without_secrets(write, self._redact) for write in writes])
        sending = self._common.commit(request) if together else self._send(request, False)
        telemetry = telemetry_in_use.get()
        results = await (sending if telemetry is None else record_commit(telemetry, sending, len(writes)))
        deletes = len([write for write in writes if isinstance(write, Delete)])
        self.usage.deletes += deletes
        self.usage.writes += len(writes) - deletes
        return Committed(tuple([result.update_time for result in results]))

    def as_stored(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of a document as a commit would store them: without recognized secrets."""
        write = Create("", data)
        if self._redact is None or not self._redact.suspects(_free_values(self._request([write]))):
            return data
        return _without_secrets(write, self._redact).data

    async def _send(self, request: Any, maybe_applied: bool) -> Sequence[Any]:
        """Send a commit, again after an error that may pass, and return the results of its writes."""
        wrapped = CommitRequest.wrap(request)
        doing = f"writing {_some([_path_of(write) for write in request.writes])}"
        for attempt in range(COMMIT_ATTEMPTS):
            try:
                async with translate_cancellation(doing):
                    response = await self._channel.api.commit(
                        request=wrapped, retry=None, timeout=ATTEMPT_TIMEOUT_SECONDS, metadata=self._channel.metadata
                    )
            except (google.GoogleAPICallError, StoreUnavailable) as error:
                maybe_applied = (
                    maybe_applied or isinstance(error, google.Cancelled) or not isinstance(error, NOT_APPLIED)
                )
                if attempt == COMMIT_ATTEMPTS - 1 or not isinstance(error, SENT_AGAIN):
                    raise _write_error(error, doing, maybe_applied) from error
                await self._clock.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
                continue
            answer = type(response).pb(response)
            self._clock.observe(codec.moment(answer.commit_time))
            return answer.write_results
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _observe(self, response: Any) -> None:
        """Learn the server's time from the read time of a response."""
        if response.HasField("read_time"):
            self._clock.observe(codec.moment(response.read_time))

    def _request(self, writes: Sequence[Write]) -> Any:
        request = _CommitRequest(database=self._channel.database)
        root, messages = self._channel.root, request.writes
        for write in writes:
            codec.write_message(write, root, messages.add())
        return request


def _path_of(write: Any) -> str:
    """Return the path of a write's document below the database."""
    return (write.update.name or write.delete).partition("/documents/")[2]


def _free_values(request: Any) -> list[bytes]:
    """Return the serialized values with text from people, skills and models."""
    values: list[bytes] = []
    for write in request.writes:
        fields = write.update.fields
        values += [fields[name].SerializeToString() for name in fields if name in FREE_FIELDS]
    return values


def _without_secrets[W: Write](write: W, redact: Redactor) -> W:
    """Return the write with all text from people, skills and models redacted; ids and states are not changed."""
    if isinstance(write, Delete):
        return write
    cleaned = {
        name: redact.value(value, by_name=name not in GIVEN_FIELDS) if name in FREE_FIELDS else value
        for name, value in write.data.items()
    }
    return replace(write, data=cleaned)


_CommitRequest: Any = CommitRequest.pb(CommitRequest()).__class__
_query_pb: Any = RunQueryResponse.pb
_request_pb: Any = RunQueryRequest.pb


def _query_request(parent: str, query: Query, root: str) -> RunQueryRequest:
    message: Any = RunQueryRequest.pb(RunQueryRequest())
    message.parent = parent
    message.structured_query.CopyFrom(codec.structured_query(query, root))
    return RunQueryRequest.wrap(message)


def _write_error(
    error: google.GoogleAPICallError | StoreUnavailable, doing: str, maybe_applied: bool
) -> FireswarmError:
    ours = error if isinstance(error, StoreUnavailable) else translate(error, doing)
    if isinstance(ours, (Conflict, StoreError)):
        ours.ambiguous = maybe_applied
    return ours


def _some(paths: Sequence[str]) -> str:
    """Name the first of several documents and the number of others."""
    if not paths:
        return "nothing"
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
