"""Group commit: all commits that arrive in one cycle of the event loop share one SQLite transaction and one sync.

A commit is validated immediately, against the stored documents plus the group's pending changes (the overlay), and
waits. The group is written at the end of the cycle. The overlay becomes visible only after SQLite's COMMIT. If writing
fails, the overlay is dropped, and every commit of the group fails with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from firelite.documents.protos import MessagePb, WritePb, WriteResultPb
from firelite.documents.record import Record
from firelite.errors import FireliteError
from firelite.storage.clock import CommitClock
from firelite.storage.commit import Pending, Prepared, prepare, written_names
from firelite.storage.datafile import Storage
from firelite.storage.versions import Change, Store

type ChangeListener = Callable[[Sequence[Change], int], None]


class Outcome(NamedTuple):
    """A durable commit and its CommitResponse."""

    response: MessagePb

    @property
    def results(self) -> Sequence[WriteResultPb]:
        """Results of the writes, in order."""
        return self.response.write_results


class CommitGroup:
    """Collects commits and writes them together."""

    def __init__(self, store: Store, storage: Storage, clock: CommitClock, next_row: int) -> None:
        self._store = store
        self._storage = storage
        self._clock = clock
        self._next_row = next_row
        self._overlay: Pending = {}
        self._newest_us = 0
        self._waiting: list[tuple[asyncio.Future[Outcome], Outcome | FireliteError]] = []
        self.listeners: list[ChangeListener] = []

    def submit(self, writes: Sequence[WritePb], names: Sequence[str]) -> asyncio.Future[Outcome]:
        """Validate a commit and add it to the group. The future completes when the commit is durable or has failed.

        ``names`` are the writes' documents, checked (see ``written_names``). A commit that fails validation also waits
        for the
        group: if the changes it was validated against cannot be written, it fails with that error instead.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self.flush)
        self._waiting.append((future, self._stage(writes, names)))
        return future

    def commit_now(self, writes: Sequence[WritePb]) -> Outcome:
        """Validate and write one commit without an event loop. Raises the error that ``submit``'s future would have."""
        self.flush()
        staged = self._stage(writes, written_names(writes))
        if isinstance(staged, FireliteError):
            raise staged
        failure = self._write()
        if failure is not None:
            raise failure
        return staged

    def flush(self) -> None:
        """Write the group now and complete its futures. Does nothing for an empty group."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            failure = self._write()
        except BaseException as error:
            # A bug: no caller may wait forever, and the owner of the loop must get the error.
            for future, _ in waiting:
                if not future.done():
                    future.set_exception(error)
            raise
        for future, staged in waiting:
            if future.cancelled():
                continue
            if failure is not None:
                future.set_exception(failure)
            elif isinstance(staged, FireliteError):
                future.set_exception(staged)
            else:
                future.set_result(staged)

    def _stage(self, writes: Sequence[WritePb], names: Sequence[str]) -> Outcome | FireliteError:
        commit_us = self._clock.next()
        try:
            prepared: Prepared = prepare(writes, names, self._current, commit_us, self._new_row)
        except FireliteError as error:
            return error
        self._overlay.update(prepared.versions)
        if prepared.versions:
            self._newest_us = commit_us
        return Outcome(prepared.response)

    def _current(self, name: str) -> Record | None:
        version = self._overlay.get(name)
        if version is not None:
            return version.record if version.record.exists else None
        return self._store.get(name)

    def _new_row(self) -> int:
        self._next_row += 1
        return self._next_row

    def _write(self) -> FireliteError | None:
        """Write the group, apply it to the store and notify listeners. Returns the error if writing failed."""
        overlay, self._overlay = self._overlay, {}
        if not overlay:
            return None
        try:
            self._storage.write([version.record for version in overlay.values()], self._newest_us)
        except FireliteError as error:
            return error
        changes = [Change(self._store.get(name), version.record, version.fields) for name, version in overlay.items()]
        changes.sort(key=lambda change: change.new.update_us)  # the history is in the order of the commits
        self._store.apply(changes, self._newest_us)
        for listener in self.listeners:
            listener(changes, self._newest_us)
        return None
