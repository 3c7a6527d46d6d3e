"""The one store adapter: the Store port over ``google-cloud-firestore``'s AsyncClient.

The same code runs on Firestore, on Google's emulator and on firelite; only the client's transport differs.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any

import anyio
from google.api_core import exceptions as google
from google.api_core.retry import AsyncRetry, if_exception_type
from google.cloud.firestore_v1 import DELETE_FIELD as GOOGLE_DELETE_FIELD
from google.cloud.firestore_v1 import SERVER_TIMESTAMP, AsyncClient
from google.cloud.firestore_v1.async_batch import AsyncWriteBatch
from google.cloud.firestore_v1.base_query import FieldFilter

from fireswarm.errors import Conflict
from fireswarm.ports import Clock, Committed, Create, Delete, Merge, Query, Sentinel, Snapshot, Update, Usage, Write
from fireswarm.stores.errors import TRANSIENT, translate, translated
from fireswarm.stores.listen import listening

ATTEMPT_TIMEOUT_SECONDS = 10.0
"""One RPC attempt. The client's ``timeout`` bounds an attempt, not the call, so the retry is given too.
Longer than nothing else waits for: a lease is renewed three times in its life, so one slow commit loses none."""

TOTAL_TIMEOUT_SECONDS = 30.0
"""All attempts of one call together."""

COMMIT_ATTEMPTS = 4
BACKOFF_SECONDS = 0.05
"""First pause between attempts of a commit; doubles, with full jitter."""

INDEX_ENTRIES_PER_READ = 1_000
"""An aggregation is billed one read for up to this many index entries (Firestore pricing)."""

_READ_RETRY = AsyncRetry(
    predicate=if_exception_type(*TRANSIENT, google.Aborted), initial=0.05, maximum=2.0, timeout=TOTAL_TIMEOUT_SECONDS
)
_VALUES: dict[Sentinel, Any] = {
    Sentinel.SERVER_TIME: SERVER_TIMESTAMP,
    Sentinel.DELETE_FIELD: GOOGLE_DELETE_FIELD,
}


class FirestoreStore:
    """Documents in Firestore, with billed operations counted and every error translated.

    One instance belongs to one event loop, as the client does. *clock* learns the server's time from
    every commit.
    """

    def __init__(self, client: AsyncClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.usage = Usage()

    async def get(self, path: str) -> Snapshot:
        """Read one document; ``data`` is None when there is none."""
        return (await self.get_many([path]))[0]

    async def get_many(self, paths: Sequence[str]) -> list[Snapshot]:
        """Read documents in one call, in the order asked for."""
        if not paths:
            return []
        found: dict[str, Snapshot] = {}
        with translated(f"reading {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")):
            references = [self._client.document(path) for path in dict.fromkeys(paths)]
            async for snapshot in self._client.get_all(references, retry=_READ_RETRY, timeout=ATTEMPT_TIMEOUT_SECONDS):
                path = snapshot.reference.path
                found[path] = Snapshot(path, snapshot.to_dict(), snapshot.update_time, snapshot.create_time)
        self.usage.reads += len(references)
        return [found.get(path) or Snapshot(path, None) for path in paths]

    async def query(self, query: Query) -> list[Snapshot]:
        """Run a query; billed at least one read."""
        built = self._build(query)
        with translated(f"querying {query.collection}"):
            found = [
                Snapshot(snapshot.reference.path, snapshot.to_dict(), snapshot.update_time, snapshot.create_time)
                async for snapshot in built.stream(retry=_READ_RETRY, timeout=ATTEMPT_TIMEOUT_SECONDS)
            ]
        self.usage.reads += max(1, len(found))
        return found

    async def count(self, query: Query) -> int:
        """Count a query's results without reading them."""
        with translated(f"counting {query.collection}"):
            rows = await self._build(query).count(alias="n").get(retry=_READ_RETRY, timeout=ATTEMPT_TIMEOUT_SECONDS)
        counted = int(rows[0][0].value)
        self.usage.reads += max(1, math.ceil(counted / INDEX_ENTRIES_PER_READ))
        return counted

    def listen(self, query: Query) -> AbstractAsyncContextManager[AsyncIterator[list[Snapshot]]]:
        """Follow a query: the iterator yields its whole result at first and after every change."""
        return listening(self._client, self._build(query), self.usage)

    async def commit(self, writes: Sequence[Write]) -> Committed:
        """Apply *writes* atomically, durably, or not at all.

        A conflict after an attempt that may have been applied unseen is marked ``ambiguous``.
        """
        maybe_applied = False
        for attempt in range(COMMIT_ATTEMPTS):
            batch = self._batch(writes)
            try:
                results = await batch.commit(retry=None, timeout=ATTEMPT_TIMEOUT_SECONDS)
            except google.GoogleAPICallError as error:
                last_chance = attempt == COMMIT_ATTEMPTS - 1
                if last_chance or not isinstance(error, (*TRANSIENT, google.ResourceExhausted, google.Aborted)):
                    raise self._refused(error, writes, maybe_applied) from error
                maybe_applied = maybe_applied or isinstance(error, TRANSIENT)
                await anyio.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
                continue
            return self._applied(batch.commit_time, writes, [result.update_time for result in results])
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _applied(self, commit_time: Any, writes: Sequence[Write], update_times: list[Any]) -> Committed:
        deletes = sum(isinstance(write, Delete) for write in writes)
        self.usage.deletes += deletes
        self.usage.writes += len(writes) - deletes
        moment: datetime = commit_time
        self._clock.observe(moment)
        return Committed(moment, tuple(update_times))

    @staticmethod
    def _refused(error: google.GoogleAPICallError, writes: Sequence[Write], maybe_applied: bool) -> Exception:
        first = writes[0].path if writes else "nothing"
        ours = translate(error, f"writing {first}" + (f" and {len(writes) - 1} more" if len(writes) > 1 else ""))
        if isinstance(ours, Conflict):
            return Conflict(str(ours), ambiguous=maybe_applied, exists=ours.exists)
        return ours

    def _batch(self, writes: Sequence[Write]) -> AsyncWriteBatch:
        batch = self._client.batch()
        for write in writes:
            reference = self._client.document(write.path)
            match write:
                case Create(data=data):
                    batch.create(reference, _encode(data))
                case Update(data=data, if_update_time=None):
                    batch.update(reference, _encode(data))
                case Update(data=data, if_update_time=version):
                    option = self._client.write_option(last_update_time=version)
                    batch.update(reference, _encode(data), option=option)
                case Merge(data=data):
                    batch.set(reference, _encode(data), merge=list(data))
                case Delete():
                    batch.delete(reference)
        return batch

    def _build(self, query: Query) -> Any:
        built: Any = self._client.collection(query.collection)
        for field, operator, value in query.where:
            built = built.where(filter=FieldFilter(field, operator, value))
        for field, direction in query.order_by:
            built = built.order_by(field, direction="ASCENDING" if direction == "asc" else "DESCENDING")
        if query.start_after is not None:
            built = built.start_after(dict(query.start_after))
        if query.limit is not None:
            built = built.limit(query.limit)
        return built


def _encode(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _VALUES[value] if isinstance(value, Sentinel) else value for key, value in data.items()}
