"""Indexes in the data file, so that a start need not build them again from all documents.

A closing database saves its large indexes, each with a hash of its definition and the time of its last commit. The
first query that needs an index after the next start loads it, and enters again what was changed after that time, such
as by a process that was killed. An index of another definition, or a damaged one, is built as if it had not been saved.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from firelite.documents.record import Record
from firelite.query.planner import IndexHome, Shape
from firelite.query.slices import SMALL_DOCUMENTS
from firelite.query.sorted_index import IndexCatalog, OrderedIndex, build_steps

# Part of the hash: increase it with a change of the encoding of keys (documents.values) or of their order.
FORMAT = 1
# A smaller index is built about as fast as it is loaded.
SAVED_MIN_ENTRIES = SMALL_DOCUMENTS
# Written while the process ends: a few seconds.
SAVED_MAX_ENTRIES = 1_000_000
# Entries read between two pauses: about a millisecond.
PAGE_ENTRIES = 500

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS indexes (id INTEGER PRIMARY KEY, definition TEXT NOT NULL UNIQUE,"
    " commit_us INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS index_entries (id INTEGER, key BLOB, row INTEGER, PRIMARY KEY (id, key)) WITHOUT ROWID",
)
_ROW = struct.Struct(">q")

type Entry = tuple[bytes, int]  # sort key and row of the document


class SavedIndex(NamedTuple):
    """An index in the file. ``commit_us`` is the time of the last commit in it, in microseconds."""

    id: int
    commit_us: int
    crc: int


def definition(home: IndexHome, shape: Shape) -> str:
    """Return the hash of an index's definition."""
    return hashlib.sha256(repr((FORMAT, home, shape)).encode("utf-8", "surrogatepass")).hexdigest()


class SavedIndexes:
    """The indexes of one data file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, home: IndexHome, shape: Shape) -> SavedIndex | None:
        """Return a saved index, or None."""
        try:
            rows = self._connection.execute(
                "SELECT id, commit_us, crc FROM indexes WHERE definition = ?", (definition(home, shape),)
            )
            row = rows.fetchone()
        except sqlite3.Error:
            return None  # nothing was ever saved, or it cannot be read
        return None if row is None else SavedIndex(*row)

    def pages(self, saved: SavedIndex) -> Iterator[list[Entry]]:
        """Yield the entries in order, a page at a time. Raises LookupError at the end if they are damaged."""
        after, crc = b"", 0
        while True:
            try:
                page: list[Entry] = self._connection.execute(
                    "SELECT key, row FROM index_entries WHERE id = ? AND key > ? ORDER BY key LIMIT ?",
                    (saved.id, after, PAGE_ENTRIES),
                ).fetchall()
            except sqlite3.Error as error:
                raise LookupError(str(error)) from error
            for key, row in page:
                crc = _checksum(key, row, crc)
            yield page
            if len(page) < PAGE_ENTRIES:
                break
            after = page[-1][0]
        if crc != saved.crc:
            raise LookupError("the checksum of the index does not match")

    def load_steps(
        self, home: IndexHome, index: OrderedIndex, names: list[str], current: Callable[[str], Record | None]
    ) -> Iterator[None]:
        """Load an index, or build it if it cannot be loaded.

        *names* are the documents of its family, ``current`` returns the newest version of one. Commits may run between
        two steps: they enter their documents themselves.
        """
        saved = self.find(home, index.shape)
        if saved is None:
            yield from build_steps(index, names, current)
            return
        by_row = {record.row: name for name in names if (record := current(name)) is not None}
        try:
            for page in self.pages(saved):
                for key, row in page:
                    record = current(by_row.get(row, ""))
                    if record is not None and record.update_us <= saved.commit_us:
                        index.restore(key, record.name)
                yield
        except LookupError:
            index.clear()
            yield from build_steps(index, names, current)
            return
        index.changes = 0
        newer = [name for name in names if (record := current(name)) and record.update_us > saved.commit_us]
        yield from build_steps(index, newer, current)

    def save_all(self, indexes: IndexCatalog, row_of: Callable[[str], int], commit_us: int) -> None:
        """Save the large indexes, unless the file has them almost as they are. Raises sqlite3.Error."""
        left = SAVED_MAX_ENTRIES
        for home, index in indexes.everything():
            stale = index.changes > len(index) // 10 or self.find(home, index.shape) is None
            if stale and SAVED_MIN_ENTRIES < len(index) <= left:
                self._save(home, index, row_of, commit_us)
                left -= len(index)

    def _save(self, home: IndexHome, index: OrderedIndex, row_of: Callable[[str], int], commit_us: int) -> None:
        name, crc = definition(home, index.shape), 0

        def entries() -> Iterator[tuple[int, bytes, int]]:
            nonlocal crc
            for key, document in index.items():
                row = row_of(document)
                crc = _checksum(key, row, crc)
                yield number, key, row

        with self._connection:  # commits, or rolls back
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                self._connection.execute(statement)
            self._remove(name)
            insert = "INSERT INTO indexes (definition, commit_us, crc) VALUES (?, ?, 0)"
            number = self._connection.execute(insert, (name, commit_us)).lastrowid or 0
            self._connection.executemany("INSERT INTO index_entries VALUES (?, ?, ?)", entries())
            self._connection.execute("UPDATE indexes SET crc = ? WHERE id = ?", (crc, number))

    def _remove(self, name: str) -> None:
        self._connection.execute(
            "DELETE FROM index_entries WHERE id IN (SELECT id FROM indexes WHERE definition = ?)", (name,)
        )
        self._connection.execute("DELETE FROM indexes WHERE definition = ?", (name,))


def _checksum(key: bytes, row: int, crc: int) -> int:
    return zlib.crc32(_ROW.pack(row), zlib.crc32(key, crc))
