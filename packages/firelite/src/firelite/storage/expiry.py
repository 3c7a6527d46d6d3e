"""Time-to-live policies: delete documents in the background after the time in their TTL field.

As in production, an expired document is visible until it is deleted, listeners see the deletion, and subcollections
remain. Values of other types never expire. Production deletes within a day; here, a sweep starts each hour of the
database's clock and reads the documents of all collection groups with a policy, a few at a time. No state is stored
between sweeps, so commits cost nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from firelite.documents.fields import lookup
from firelite.documents.paths import FieldPath
from firelite.documents.protos import Write, WritePb, micros_of
from firelite.storage.versions import Change, Store

SWEEP_EVERY_SECONDS = 3600
# A command that opens the file briefly does not sweep.
FIRST_SWEEP_SECONDS = 10
# About a millisecond of reading, or a few for deletions, then a pause for other work.
SLICE_DOCUMENTS = 100
PAUSE_SECONDS = 0.005


class ExpirySweeper:
    """Deletes the expired documents of a database.

    ``policies`` maps collection ids to their TTL field, ``now_us`` returns the database's time, and ``delete`` commits
    each deletion separately without waiting; the next sweep repeats a failed deletion.
    """

    def __init__(
        self,
        store: Store,
        policies: Mapping[str, FieldPath],
        now_us: Callable[[], int],
        delete: Callable[[Sequence[WritePb]], object],
    ) -> None:
        self._store = store
        self._policies = policies
        self._now_us = now_us
        self._delete = delete
        self._due_us: int | None = None  # time of the next sweep; None before the first commit or server
        self._unread: Iterator[tuple[str, FieldPath]] = iter(())
        self._timer: asyncio.TimerHandle | None = None

    @property
    def armed(self) -> bool:
        """Return True if a timer will continue or start a sweep."""
        return self._timer is not None

    def start(self) -> None:
        """Plan the first sweep, if there are policies. Needs the running event loop."""
        if self._policies and self._due_us is None:
            self._plan(FIRST_SWEEP_SECONDS)

    def on_commit(self, _: Sequence[Change], commit_us: int) -> None:
        """Start a sweep that is due by the database's clock, which may be ahead of the event loop's."""
        if self._due_us is not None and commit_us < self._due_us:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return  # a command without an event loop
        if self._due_us is None:
            self.start()
        else:
            self._begin()

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _plan(self, seconds: float) -> None:
        self._due_us = self._now_us() + int(seconds * 1_000_000)
        self._arm(seconds, self._begin)

    def _arm(self, seconds: float, action: Callable[[], None]) -> None:
        self.close()
        self._timer = asyncio.get_running_loop().call_later(seconds, action)

    def _begin(self) -> None:
        self._due_us = self._now_us() + SWEEP_EVERY_SECONDS * 1_000_000
        self._unread = self._names()
        self._arm(0, self._continue)

    def _continue(self) -> None:
        """Check the next documents, and delete those that have expired."""
        names = list(islice(self._unread, SLICE_DOCUMENTS))
        now_us = self._now_us()
        expired = [Write(delete=name) for name, field in names if self._is_expired(name, field, now_us)]
        if expired:
            self._delete(expired)
        if len(names) == SLICE_DOCUMENTS:
            self._arm(PAUSE_SECONDS, self._continue)
        else:
            self._plan(SWEEP_EVERY_SECONDS)

    def _names(self) -> Iterator[tuple[str, FieldPath]]:
        for collection_id, field in self._policies.items():
            for collection in self._store.collections_of(collection_id):
                for name in self._store.names_in(collection):
                    yield name, field

    def _is_expired(self, name: str, field: FieldPath, now_us: int) -> bool:
        record = self._store.get(name)
        value = None if record is None else lookup(record.fields(), field)
        if value is None or value.WhichOneof("value_type") != "timestamp_value":
            return False
        return micros_of(value.timestamp_value) <= now_us
