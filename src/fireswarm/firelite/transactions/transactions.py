"""Transactions: pessimistic read-write ones, and read-only ones on a snapshot.

A read-write transaction takes a shared lock on every document it reads, missing ones and query results included, so
what it read is still true when it commits. Documents that would newly match one of its queries are not locked;
instead the queries run again at commit, and a different result is ABORTED. That keeps inserts into a busy collection
from waiting for every transaction that has queried it, and is as strict.

A transaction that retries an aborted one keeps its place in the queue (its age) and locks what it reads exclusively:
the conflict is known by then, and reading shared would only lose it again.

A transaction that loses while it reads goes on reading, at the moment it lost (until then its locks kept what it had
read true, so that is one snapshot), and gets its ABORTED from Commit: official clients retry only there.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from fireswarm.firelite.errors import Aborted, InvalidArgument
from fireswarm.firelite.transactions.locks import LockTable, Owner

# https://firebase.google.com/docs/firestore/quotas#writes_and_transactions
IDLE_SECONDS = 60.0
TOTAL_SECONDS = 270.0

_ID = struct.Struct(">QQ")  # age, serial: a retry names the transaction before it, and so hands down its age

# Aborted transactions remembered; a client that lost one asks again within the second.
_ENDED_MAX = 1024

type Fingerprint = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """Time limits of transactions in seconds; tests shorten them."""

    idle_seconds: float = IDLE_SECONDS
    total_seconds: float = TOTAL_SECONDS


@dataclass(eq=False, slots=True)
class Transaction:
    """One open transaction. ``read_us`` is a read-only transaction's snapshot, None for a read-write one."""

    id: bytes
    owner: Owner
    read_us: int | None
    retried: bool
    began: float
    last_used: float
    queries: list[tuple[Callable[[], Fingerprint], Fingerprint]] = field(
        default_factory=list[tuple[Callable[[], Fingerprint], Fingerprint]]
    )
    has_read: bool = False
    lost: tuple[str, int] | None = None  # why it cannot commit any more, and the moment it reads at since
    timer: asyncio.TimerHandle | None = None

    @property
    def snapshot_us(self) -> int | None:
        """The moment it reads at, None for the newest state."""
        return self.lost[1] if self.lost is not None else self.read_us


class TransactionTable:
    """The open transactions. Belongs to one event loop."""

    def __init__(self, locks: LockTable, limits: TransactionLimits, now_us: Callable[[], int]) -> None:
        self._locks = locks
        self._now_us = now_us
        self._limits = limits
        self._open: dict[bytes, Transaction] = {}
        # Recently ended ones, why and how old: to answer ABORTED and not "unknown", and to hand down the age.
        # A failed commit (no reason to keep) may still be rolled back: clients do.
        self._ended: dict[bytes, tuple[str | None, int]] = {}
        self._serials = count(1)
        self._ages = count(1)

    def begin(self, *, read_us: int | None, retry_of: bytes = b"") -> Transaction:
        """Open a transaction; ``read_us`` makes it read-only, ``retry_of`` hands down an aborted one's age."""
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
        """The open transaction; raises Aborted when it was, InvalidArgument for one that is unknown or finished."""
        transaction = self._open.get(transaction_id)
        if transaction is None:
            reason = self._ended.get(transaction_id, (None, 0))[0]
            if reason is not None:
                raise Aborted(reason)
            raise InvalidArgument(f"Transaction {transaction_id.hex()[-8:]} is unknown, finished or expired.")
        transaction.last_used = asyncio.get_running_loop().time()
        return transaction

    async def lock_reads(self, transaction: Transaction, names: list[str]) -> bool:
        """Lock what the transaction reads; answers whether it had to wait (then what it has seen may be stale).

        A transaction that loses meanwhile has a ``snapshot_us`` to read at instead.
        """
        if not transaction.has_read and not transaction.retried:
            transaction.owner.age = next(self._ages)  # the first reader wins, not the first to begin
        transaction.has_read = True
        if self._locks.try_acquire(transaction.owner, names, exclusive=transaction.retried):
            return False
        try:
            await self._locks.acquire(transaction.owner, names, exclusive=transaction.retried)
        except Aborted:
            if transaction.lost is None:
                raise
        transaction.last_used = asyncio.get_running_loop().time()
        return True

    async def lock_writes(self, transaction: Transaction, names: list[str]) -> None:
        """Lock what the transaction is about to commit; raises Aborted when it lost, and ends it then."""
        try:
            if transaction.lost is not None:
                raise Aborted(transaction.lost[0])
            if names:
                await self._locks.acquire(transaction.owner, names, exclusive=True)
        except Aborted as error:
            self.abort(transaction, error.message)
            raise

    def verify_queries(self, transaction: Transaction) -> None:
        """Run the transaction's queries again; raises Aborted when one would return something else now."""
        for run, seen in transaction.queries:
            if run() != seen:
                reason = f"{transaction.owner.label} ran a query whose result has changed since; retry it."
                self.abort(transaction, reason)
                raise Aborted(reason)

    def rollback(self, transaction_id: bytes) -> None:
        """Give a transaction up; one that was aborted before is over already."""
        if transaction_id not in self._ended:
            self.finish(self.get(transaction_id))

    def finish(self, transaction: Transaction) -> None:
        """The transaction committed or rolled back: release what it holds."""
        self._close(transaction)
        self._locks.release(transaction.owner)

    def fail(self, transaction: Transaction) -> None:
        """The transaction's commit cannot succeed: release what it holds; a rollback of it is still answered."""
        self.finish(transaction)
        self._remember(transaction, None)

    def close(self) -> None:
        """End every transaction: the database closes."""
        for transaction in list(self._open.values()):
            self.abort(transaction, "The database was closed.")

    def abort(self, transaction: Transaction, reason: str) -> None:
        """End the transaction; from now on it is answered ABORTED, for this reason."""
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
