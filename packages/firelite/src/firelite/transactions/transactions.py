"""Transactions: pessimistic read-write ones, and read-only ones on a snapshot.

A read-write transaction takes a shared lock on every document it reads, including missing ones and query results, so
its reads are still valid when it commits. Documents that would newly match one of its queries are not locked; instead
the results are checked again at commit, and a different result is ABORTED. This is equally strict, but inserts into a
busy collection need not wait for every transaction that has queried it.

A transaction that retries an aborted one inherits its age and locks its reads exclusively: the conflict is known by
then, and shared locks would only lose again.

A transaction that is aborted while it reads continues to read at the time of the abort. Its locks kept its reads valid
until then, so all its reads are one snapshot. Commit returns ABORTED, because official clients retry only after a
failed commit.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import batched, count

from firelite.errors import Aborted, InvalidArgument
from firelite.query.slices import pause
from firelite.transactions.locks import LockTable, Owner

# https://firebase.google.com/docs/firestore/quotas#writes_and_transactions
IDLE_SECONDS = 60.0
TOTAL_SECONDS = 270.0

_ID = struct.Struct(">QQ")  # age, serial: a retry passes this id of its predecessor and so inherits its age

# Documents locked between two pauses of a long query: about a millisecond.
LOCKED_AT_ONCE = 1000

# Number of aborted transactions remembered; a client retries within about a second.
_ENDED_MAX = 1024


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """Time limits of transactions in seconds; tests shorten them."""

    idle_seconds: float = IDLE_SECONDS
    total_seconds: float = TOTAL_SECONDS


@dataclass(eq=False, slots=True)
class Transaction:
    """One open transaction. ``read_us`` is the snapshot time of a read-only transaction, None for a read-write one."""

    id: bytes
    owner: Owner
    read_us: int | None
    retried: bool
    began: float
    last_used: float
    queries: list[Callable[[], bool]] = field(default_factory=list[Callable[[], bool]])  # has the result changed?
    has_read: bool = False
    lost: tuple[str, int] | None = None  # reason of the abort, and the time at which reads continue
    timer: asyncio.TimerHandle | None = None

    @property
    def snapshot_us(self) -> int | None:
        """Time to read at in microseconds; None for the newest state."""
        return self.lost[1] if self.lost is not None else self.read_us


class TransactionTable:
    """The open transactions. Belongs to one event loop."""

    def __init__(self, locks: LockTable, limits: TransactionLimits, now_us: Callable[[], int]) -> None:
        self._locks = locks
        self._now_us = now_us
        self._limits = limits
        self._open: dict[bytes, Transaction] = {}
        # Recently ended ones, with reason and age: to return ABORTED instead of "unknown", and to pass on the age.
        # After a failed commit the reason is None; clients may still roll it back.
        self._ended: dict[bytes, tuple[str | None, int]] = {}
        self._serials = count(1)
        self._ages = count(1)

    def begin(self, *, read_us: int | None, retry_of: bytes = b"") -> Transaction:
        """Open a transaction.

        ``read_us`` makes it read-only; with ``retry_of`` it inherits the age of an aborted one.
        """
        loop = asyncio.get_running_loop()
        age = self._age_of(retry_of) if retry_of else next(self._ages)
        transaction_id = _ID.pack(age, next(self._serials))
        transaction = Transaction(
            id=transaction_id,
            owner=Owner(f"Transaction {transaction_id.hex()[-8:]}", age),
            read_us=read_us,
            retried=bool(retry_of),
            began=loop.time(),
            last_used=loop.time(),
        )
        transaction.owner.on_abort = lambda reason: self._lose(transaction, reason)
        self._open[transaction.id] = transaction
        self._arm(transaction)
        return transaction

    def get(self, transaction_id: bytes) -> Transaction:
        """Return the open transaction. Raises Aborted if it was aborted, InvalidArgument if unknown or finished."""
        transaction = self._open.get(transaction_id)
        if transaction is None:
            reason = self._ended.get(transaction_id, (None, 0))[0]
            if reason is not None:
                raise Aborted(reason)
            raise InvalidArgument(f"Transaction {transaction_id.hex()[-8:]} is unknown, finished or expired.")
        transaction.last_used = asyncio.get_running_loop().time()
        return transaction

    async def lock_reads(self, transaction: Transaction, names: list[str], *, pauses: bool = False) -> None:
        """Lock the documents that the transaction reads. After a wait, or a pause, its results may be stale.

        With *pauses*, many documents are locked in parts, between which other requests run. A transaction that is
        aborted meanwhile gets a ``snapshot_us`` for its reads.
        """
        if not transaction.has_read and not transaction.retried:
            transaction.owner.age = next(self._ages)  # the age starts with the first read, not with the begin
        transaction.has_read = True
        parts = batched(names, LOCKED_AT_ONCE) if pauses else [names]
        for number, part in enumerate(parts):
            if number:
                await pause()
            if transaction.lost is not None or not await self._lock_part(transaction, part):
                return

    async def _lock_part(self, transaction: Transaction, names: Sequence[str]) -> bool:
        """Lock documents. Returns False if the transaction is aborted meanwhile."""
        if self._locks.try_acquire(transaction.owner, names, exclusive=transaction.retried):
            return True
        try:
            await self._locks.acquire(transaction.owner, names, exclusive=transaction.retried)
        except Aborted:
            if transaction.lost is None:
                raise
        transaction.last_used = asyncio.get_running_loop().time()
        return transaction.lost is None

    async def lock_writes(self, transaction: Transaction, names: list[str]) -> None:
        """Lock the documents to commit. Raises Aborted, and ends the transaction, if it was aborted before or now."""
        try:
            if transaction.lost is not None:
                raise Aborted(transaction.lost[0])
            if names:
                transaction.owner.precedes = transaction.has_read
                await self._locks.acquire(transaction.owner, names, exclusive=True)
            if transaction.lost is not None:  # between the grant and now
                raise Aborted(transaction.lost[0])
            transaction.owner.committing = True
        except Aborted as error:
            self.abort(transaction, error.message)
            raise

    def reopen(self, transaction: Transaction) -> None:
        """Let a transaction stay open whose commit could not be written."""
        transaction.owner.committing = False

    def verify_queries(self, transaction: Transaction) -> None:
        """Check the results of the transaction's queries. Raises Aborted if one has changed."""
        for has_changed in transaction.queries:
            if has_changed():
                reason = f"{transaction.owner.label} ran a query whose result has changed since; retry it."
                self.abort(transaction, reason)
                raise Aborted(reason)

    def rollback(self, transaction_id: bytes) -> None:
        """Roll a transaction back. Does nothing for one that was aborted."""
        if transaction_id not in self._ended:
            self.finish(self.get(transaction_id))

    def finish(self, transaction: Transaction) -> None:
        """Release the locks of a transaction that committed or was rolled back."""
        self._close(transaction)
        self._locks.release(transaction.owner)

    def fail(self, transaction: Transaction) -> None:
        """Release the locks of a transaction whose commit failed. It may still be rolled back."""
        self.finish(transaction)
        self._remember(transaction, None)

    def close(self) -> None:
        """End every transaction, because the database closes."""
        for transaction in list(self._open.values()):
            self.abort(transaction, "The database was closed.")

    def abort(self, transaction: Transaction, reason: str) -> None:
        """End the transaction; further requests of it get ABORTED with this reason."""
        self._close(transaction)
        self._remember(transaction, reason)
        self._locks.abort(transaction.owner, reason)

    def _lose(self, transaction: Transaction, reason: str) -> None:
        if transaction.lost is None and transaction.id in self._open:
            transaction.lost = (reason, self._now_us())

    def _close(self, transaction: Transaction) -> None:
        self._open.pop(transaction.id, None)
        if transaction.timer is not None:
            transaction.timer.cancel()

    def _remember(self, transaction: Transaction, reason: str | None) -> None:
        self._ended[transaction.id] = (reason, transaction.owner.age or 0)
        if len(self._ended) > _ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def _arm(self, transaction: Transaction) -> None:
        loop = asyncio.get_running_loop()
        limits = self._limits
        due = min(transaction.last_used + limits.idle_seconds, transaction.began + limits.total_seconds)
        transaction.timer = loop.call_at(due, self._expire, transaction)

    def _expire(self, transaction: Transaction) -> None:
        now = asyncio.get_running_loop().time()
        if now >= transaction.began + self._limits.total_seconds:
            over = f"ran longer than {self._limits.total_seconds:g} s"
        elif now >= transaction.last_used + self._limits.idle_seconds:
            over = f"was idle for {self._limits.idle_seconds:g} s"
        else:
            self._arm(transaction)
            return
        self.abort(transaction, f"{transaction.owner.label} {over}; start it again.")

    def _age_of(self, transaction_id: bytes) -> int:
        if transaction_id in self._ended:
            return self._ended[transaction_id][1]
        if len(transaction_id) != _ID.size:
            raise InvalidArgument("retry_transaction names no transaction of this database.")
        return _ID.unpack(transaction_id)[0]
