"""Stores of due times. All machines that share a quota share a store, and its clock."""

import sqlite3
import threading
import time
from typing import Protocol


class StoreUnavailable(Exception):
    """The store cannot be reached, or did not let the keeper write."""


class Store(Protocol):
    """What a keeper needs."""

    def now(self) -> float:
        """The time of the store."""

    def get(self, key: str) -> float | None:
        """The due time of a key."""

    def compare_and_set(self, key: str, before: float | None, after: float) -> bool:
        """Write a due time if it is still the one that was read."""


class MemoryStore:
    """Due times in this process, for tests."""

    def __init__(self, clock=time.monotonic) -> None:
        self.clock = clock
        self.due: dict[str, float] = {}
        self.lock = threading.Lock()

    def now(self) -> float:
        return self.clock()

    def get(self, key: str) -> float | None:
        return self.due.get(key)

    def compare_and_set(self, key: str, before: float | None, after: float) -> bool:
        with self.lock:
            if self.due.get(key) != before:
                return False
            self.due[key] = after
            return True


class SqlStore:
    """Due times in a table of an SQL database that all machines reach; *connect* opens a connection."""

    def __init__(self, connect) -> None:
        self.connect = connect
        self._run("create table if not exists quota_due (key text primary key, due double precision)")

    def now(self) -> float:
        [(seconds,)] = self._run("select (julianday('now') - 2440587.5) * 86400.0")
        return seconds

    def get(self, key: str) -> float | None:
        rows = self._run("select due from quota_due where key = ?", key)
        return rows[0][0] if rows else None

    def compare_and_set(self, key: str, before: float | None, after: float) -> bool:
        if before is None:
            done = self._run("insert into quota_due values (?, ?) on conflict do nothing returning due", key, after)
        else:
            done = self._run("update quota_due set due = ? where key = ? and due = ? returning due", after, key, before)
        return bool(done)

    def sweep(self) -> None:
        """Remove the rows of quotas that are full again."""
        self._run("delete from quota_due where due < ?", self.now())

    def _run(self, statement: str, *values):
        try:
            with self.connect() as connection:
                return connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(str(error)) from error
