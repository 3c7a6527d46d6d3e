"""The database: one data file, its documents in memory, and the operations on them.

A ``Database`` belongs to one thread; its coroutines run on one event loop at a time.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from firelite.documents.paths import FieldPath
from firelite.documents.protos import WritePb
from firelite.documents.record import Record
from firelite.errors import (
    Aborted,
    CorruptDataFile,
    FireliteError,
    InvalidArgument,
    ResourceExhausted,
    Unavailable,
)
from firelite.listen.watch import WatchHub
from firelite.query.index_definitions import IndexSet
from firelite.query.query import Query
from firelite.query.slices import in_slices
from firelite.storage.clock import CommitClock
from firelite.storage.commit import written_names
from firelite.storage.datafile import HEADER_BYTES, MemoryStorage, SqliteStorage, Storage
from firelite.storage.expiry import ExpirySweeper
from firelite.storage.group_commit import CommitGroup, Outcome
from firelite.storage.lockfile import FileLock
from firelite.storage.snapshot_scan import snapshot_steps
from firelite.storage.versions import HistoryLimits, Store
from firelite.transactions.locks import LOCK_WAIT_SECONDS, LockTable, Owner
from firelite.transactions.transactions import Transaction, TransactionLimits, TransactionTable

# A long query in a transaction lets other requests run, at most this often if their commits change its result.
PAUSING_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a database."""

    transactions: TransactionLimits
    history: HistoryLimits
    lock_wait_seconds: float


@dataclass(frozen=True, slots=True)
class Consistency:
    """The version that a read gets: the newest, a transaction's, or that of a past time (``read_us``)."""

    transaction: Transaction | None = None
    read_us: int | None = None

    @property
    def snapshot_us(self) -> int | None:
        """Time to read at in microseconds; None for the newest state."""
        return self.transaction.snapshot_us if self.transaction is not None else self.read_us


class Database:
    """An embedded Firestore. Open one with ``Database.open``."""

    def __init__(
        self,
        storage: Storage,
        lock: FileLock | None,
        indexes: IndexSet | None,
        clock: Callable[[], int],
        limits: Limits,
    ) -> None:
        """Load the documents from *storage* and set up commits, listeners, locks and transactions."""
        self.indexes = indexes
        self._storage = storage
        self._lock = lock
        self._closed = False
        last_us = storage.last_commit_us()
        # Earlier commits have no history; this is the earliest time that can be read.
        folder = None if storage.path is None else storage.path.parent
        self.store = Store(last_us, storage.lineage(), limits.history, folder)
        self.store.saved = storage.saved_indexes()
        next_row = self._load()
        self.clock = CommitClock(clock, last_us)
        self.group = CommitGroup(self.store, storage, self.clock, next_row)
        self.hub = WatchHub(self.store, self.group, self.clock, self.check_query)
        self.expiry = ExpirySweeper(
            self.store, {} if indexes is None else indexes.ttl_fields, self.clock.now, self.commit_each_now
        )
        if indexes is not None and indexes.ttl_fields:
            self.group.listeners.append(self.expiry.on_commit)
        self.locks = LockTable(limits.lock_wait_seconds)
        self.transactions = TransactionTable(self.locks, limits.transactions, self.clock.now)

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        *,
        indexes: IndexSet | None = None,
        clock: Callable[[], int] = time.time_ns,
        limits: TransactionLimits | None = None,
        lock_wait_seconds: float = LOCK_WAIT_SECONDS,
        read_only: bool = False,
        history: HistoryLimits | None = None,
    ) -> Database:
        """Open a data file, or create it. None keeps everything in memory only.

        ``indexes`` turns on index enforcement and its time-to-live policies, ``clock`` returns nanoseconds since
        1970, ``history`` limits the old versions that can be read (by default those of an hour). ``read_only`` opens
        the last commit of an existing file, also while another process has it open. Raises DataFileInUse,
        CorruptDataFile, or Unavailable if the file cannot be opened.
        """
        all_limits = Limits(limits or TransactionLimits(), history or HistoryLimits(), lock_wait_seconds)
        if path is None:
            return cls(MemoryStorage(), None, indexes, clock, all_limits)
        path = Path(path).resolve()
        with ExitStack() as cleanup:
            lock = None if read_only else FileLock(path)
            if lock is not None:
                cleanup.callback(lock.release)
                _check_length(path, lock)
            storage = SqliteStorage(path, read_only=read_only)
            cleanup.callback(storage.close)
            database = cls(storage, lock, indexes, clock, all_limits)
            cleanup.pop_all()
        return database

    def _load(self) -> int:
        highest = 0
        names: set[str] = set()
        for record in self._storage.load():
            if record.name in names and self._storage.path is not None:
                raise CorruptDataFile(self._storage.path, f"it holds {record.name} twice")
            names.add(record.name)
            highest = max(highest, record.row)
            self.store.load([record])
        return highest

    def close(self) -> None:
        """Write pending commits, end all transactions and release the file. May be called twice."""
        if self._closed:
            return
        self.group.flush()
        self._closed = True
        self.expiry.close()
        self.transactions.close()
        self.hub.close()
        with suppress(sqlite3.Error):  # such as a full disk: then the next start builds the indexes again
            self.store.save_indexes()
        self._storage.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Return True if ``close`` was called."""
        return self._closed

    @property
    def path(self) -> Path | None:
        """Path of the data file; None in memory."""
        return self._storage.path

    def renew_lineage(self) -> None:
        """Begin another history: listeners that reconnect start over. Raises ResourceExhausted or Unavailable."""
        self._storage.renew_lineage()
        self.store.lineage = self._storage.lineage()

    def publish_endpoint(self, endpoint: str | None) -> None:
        """Publish the address (``host:port``) of this database in the lock file."""
        if self._lock is not None and not self._closed:
            self._lock.publish(endpoint)

    def check_open(self) -> None:
        """Raise Unavailable after ``close``."""
        if self._closed:
            raise Unavailable("The database is closed.")

    async def commit(
        self, writes: Sequence[WritePb], transaction_id: bytes = b"", names: Sequence[str] | None = None
    ) -> Outcome:
        """Apply the writes atomically. Returns once they are durable.

        ``names`` are the writes' documents if the caller has checked them already (see ``written_names``). If a write
        cannot be applied, no write is applied, and its FireliteError is raised. Raises Aborted for a lock that could
        not be acquired, and ResourceExhausted or Unavailable if the file could not be written.
        """
        self.check_open()
        names = written_names(writes) if names is None else names
        if transaction_id:
            return await self._commit_transaction(self.transactions.get(transaction_id), writes, names)
        if self.locks.idle:
            return await self.group.submit(writes, names)
        owner = Owner("A write")
        try:
            await self.locks.acquire(owner, names, exclusive=True)
            self.check_open()
            return await self.group.submit(writes, names)
        finally:
            self.locks.release(owner)

    def commit_each_now(self, writes: Sequence[WritePb]) -> list[Outcome | FireliteError]:
        """Apply each write separately, with one sync and without waiting: a locked document gets Aborted.

        For callers that block the event loop of this database.
        """
        self.check_open()
        staged: list[asyncio.Future[Outcome] | FireliteError] = []
        for write in writes:
            owner = Owner("A write")
            names = written_names([write])
            if self.locks.try_acquire(owner, names, exclusive=True):
                staged.append(self.group.submit([write], names))
                self.locks.release(owner)
            else:
                staged.append(Aborted(f"{names[0]} is locked by a transaction; retry."))
        self.group.flush()
        results: list[Outcome | FireliteError] = []
        for item in staged:
            if isinstance(item, FireliteError):
                results.append(item)
            else:
                error = item.exception()
                results.append(error if isinstance(error, FireliteError) else item.result())
        return results

    async def _commit_transaction(
        self, transaction: Transaction, writes: Sequence[WritePb], names: Sequence[str]
    ) -> Outcome:
        """Lock the writes, verify the transaction's queries, and commit."""
        if transaction.read_us is not None and writes:
            self.transactions.fail(transaction)
            raise InvalidArgument("A read-only transaction cannot write.")
        await self.transactions.lock_writes(transaction, list(names))
        self.check_open()
        if transaction.queries:
            self.group.flush()
            self.transactions.verify_queries(transaction)
        try:
            outcome = await self.group.submit(writes, names)
        except (ResourceExhausted, Unavailable):
            self.transactions.reopen(transaction)  # clients repeat the same commit
            raise
        except FireliteError:
            self.transactions.fail(transaction)
            raise
        self.transactions.finish(transaction)
        return outcome

    def begin(self, *, read_only: bool = False, read_us: int | None = None, retry_of: bytes = b"") -> Transaction:
        """Open a transaction. A read-only transaction reads the state at ``read_us``, or the current one.

        Raises InvalidArgument or FailedPrecondition for a time that cannot be read.
        """
        self.check_open()
        if not read_only:
            return self.transactions.begin(read_us=None, retry_of=retry_of)
        self.group.flush()
        return self.transactions.begin(read_us=self.clock.now() if read_us is None else self.check_read_us(read_us))

    def check_read_us(self, read_us: int) -> int:
        """Return the time if it can be read. Raises InvalidArgument (future) or FailedPrecondition (too old)."""
        if read_us > self.clock.now():
            raise InvalidArgument("The requested read_time lies in the future.")
        self.store.check_readable(read_us)
        return read_us

    async def get_many(self, names: Sequence[str], consistency: Consistency) -> tuple[list[Record | None], int]:
        """Return the documents (None for a missing one) and their read time in microseconds."""
        self.check_open()
        if consistency.transaction is not None and consistency.snapshot_us is None:
            await self.transactions.lock_reads(consistency.transaction, list(names))
            self.group.flush()
        snapshot_us = consistency.snapshot_us
        if snapshot_us is not None:
            return [self.store.get_at(name, snapshot_us) for name in names], snapshot_us
        return [self.store.get(name) for name in names], self.clock.now()

    async def run_query(self, query: Query, consistency: Consistency) -> tuple[list[Record], int, int]:
        """Return the query's documents in order, the number skipped by the offset, and the read time (microseconds).

        The caller has checked the query's indexes (``check_query``).
        """
        self.check_open()
        transaction = consistency.transaction
        if transaction is not None and consistency.snapshot_us is None:
            records, skipped = await self._locked_query(query, transaction)
            if consistency.snapshot_us is None:
                return records, skipped, self.clock.now()
        snapshot_us = consistency.snapshot_us
        if snapshot_us is None:
            result = self.store.run_small(query)
            if result is not None:
                return *result, self.clock.now()
            # From here on, other requests run in between; the history preserves the current state.
            self.group.flush()
            snapshot_us = self.clock.now()
        records, skipped = await in_slices(snapshot_steps(self.store, query, snapshot_us))
        return records, skipped, snapshot_us

    async def count(self, query: Query) -> int | None:
        """Count the newest documents that match, or return None if an index is not sufficient."""
        await in_slices(self.store.all_index_steps(query))
        return self.store.count(query)

    async def _locked_query(self, query: Query, transaction: Transaction) -> tuple[list[Record], int]:
        """Run a query and lock its documents. Repeats if the result changed during a wait or a pause."""
        pauses = PAUSING_ATTEMPTS
        while True:
            pauses -= 1
            self.group.flush()
            read_us = self.clock.now()
            result = self.store.run_small(query)
            if result is None and pauses >= 0:
                result = await in_slices(snapshot_steps(self.store, query, read_us))
            elif result is None:  # other commits change the result again and again
                result = self.store.run(query)
            names = [record.name for record in result[0]]
            await self.transactions.lock_reads(transaction, names, pauses=pauses >= 0)
            self.group.flush()
            if transaction.lost is not None or not self._has_changed(query, result[0], read_us):
                break
        transaction.queries.append(partial(self._has_changed, query, result[0], read_us))
        return result

    def _has_changed(self, query: Query, records: list[Record], since_us: int) -> bool:
        """Return True if the query's result is no longer the one read at a time.

        Looks at the documents changed since then only, unless it needs the others to find out.
        """
        if since_us >= self.store.horizon_us:
            if not self.store.touches(query, since_us):
                return False
            if not query.bounded:
                return True
        return _fingerprint(self.store.run(query)[0]) != _fingerprint(records)

    def check_query(self, query: Query, *, search: FieldPath | None = None) -> None:
        """Raise FailedPrecondition if production would lack an index for the query. Needs ``indexes``.

        ``search`` is the vector field of a vector search.
        """
        self.check_open()
        if self.indexes is not None and search is not None:
            self.indexes.check_search(query, search)
        elif self.indexes is not None:
            self.indexes.check(query)


def _check_length(path: Path, lock: FileLock) -> None:
    """Raise CorruptDataFile for a file that was cut off so far that SQLite would take it for a new one."""
    size = path.stat().st_size if path.exists() else HEADER_BYTES
    if size < HEADER_BYTES and (size or not lock.is_new):
        raise CorruptDataFile(path, f"it has {size} bytes: it was cut off")


def _fingerprint(records: Sequence[Record]) -> list[tuple[str, int]]:
    return [(record.name, record.update_us) for record in records]
