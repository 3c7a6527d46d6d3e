"""The durable table: one SQLite row per document, written in one transaction per commit group.

All reads use memory; SQLite is read once on opening and then only written. WAL with ``synchronous=FULL`` syncs the log
before a commit returns, so acknowledged commits survive a kill or a power cut. SQLite's own locks allow other processes
to read the last commit meanwhile, for backups and exports; ``lockfile`` allows one process to write.
"""

from __future__ import annotations

import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from firelite.disk import is_full
from firelite.documents.record import Record
from firelite.errors import CorruptDataFile, DiskFull, FailedPrecondition, FireliteError, Unavailable
from firelite.storage.saved_indexes import SavedIndexes

APPLICATION_ID = 0x46_4C_49_54  # "FLIT", in the SQLite header
FORMAT_VERSION = 1
HEADER_BYTES = 100  # https://www.sqlite.org/fileformat.html#the_database_header

_ONE_BYTE_LENGTHS = 128
"""Protocol buffers write smaller lengths in one byte; a name has at most 6 KiB, which needs two."""

_SCHEMA = (
    "CREATE TABLE documents (row INTEGER PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL,"
    " create_us INTEGER NOT NULL, update_us INTEGER NOT NULL)",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO meta VALUES ('last_commit_us', 0)",
)
_DAMAGE_ERRORS = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_ERROR,  # a statement of ours that does not fit: the schema is damaged
        sqlite3.SQLITE_IOERR_SHORT_READ,  # the file was cut off
    }
)


class Storage(Protocol):
    """The file that makes commits durable. ``path`` is None in memory."""

    path: Path | None

    def load(self) -> Iterator[Record]:
        """Yield every stored document, once, on opening."""
        ...

    def last_commit_us(self) -> int:
        """Return the newest commit time written, in microseconds (0 if there is none)."""
        ...

    def lineage(self) -> int:
        """Return the random number of this history of commits (see ``listen.tokens``)."""
        ...

    def saved_indexes(self) -> SavedIndexes | None:
        """Return the indexes in the file; None if they cannot be saved."""
        ...

    def renew_lineage(self) -> None:
        """Choose another lineage: what clients have seen so far is no part of this history."""
        ...

    def write(self, records: Sequence[Record], commit_us: int) -> None:
        """Make the newest versions durable, all or none. Raises ResourceExhausted or Unavailable."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class MemoryStorage:
    """Storage for a database in memory: it stores nothing."""

    path: Path | None = None

    def __init__(self) -> None:
        """Start without documents."""
        self.renew_lineage()

    def load(self) -> Iterator[Record]:
        """Return no documents."""
        return iter(())

    def last_commit_us(self) -> int:
        """Return 0: there are no stored commits."""
        return 0

    def lineage(self) -> int:
        """Return the lineage of this database."""
        return self._lineage

    def saved_indexes(self) -> SavedIndexes | None:
        """Return None."""
        return None

    def renew_lineage(self) -> None:
        """Choose another lineage."""
        self._lineage = _random_lineage()

    def write(self, records: Sequence[Record], commit_us: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SqliteStorage:
    """One SQLite file.

    With *read_only*, it shows the last commit at the time of opening, also of a file that another process writes.
    Raises CorruptDataFile for a file that is damaged or not firelite's, Unavailable for one that cannot be opened.
    """

    path: Path | None

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the file and check or create its schema."""
        self._path = self.path = path
        self._read_only = read_only
        is_new = not path.exists()
        try:
            uri = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise Unavailable(f"The data file {path} cannot be opened: {error}.") from error
        try:
            self._prepare()
        except BaseException as error:  # whatever it is, the file must not stay open
            self._connection.close()
            if is_new and path.exists() and not path.stat().st_size:
                path.unlink()
            if isinstance(error, sqlite3.Error):
                raise self._opening_error(error) from error
            raise

    def _prepare(self) -> None:
        """Check the file's format, set the pragmas, and create the schema in an empty file."""
        execute = self._connection.execute
        if self._read_only:
            execute("BEGIN")  # all reads until ``close`` see one commit
        (application,) = execute("PRAGMA application_id").fetchone()
        (version,) = execute("PRAGMA user_version").fetchone()
        (tables,) = execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION_ID:
            raise CorruptDataFile(self._path, "it is an SQLite file, but not firelite's")
        if tables and version != FORMAT_VERSION:
            raise CorruptDataFile(self._path, f"its format is version {version}, this program reads {FORMAT_VERSION}")
        if self._read_only:
            return
        execute("PRAGMA journal_mode=WAL")
        execute("PRAGMA synchronous=FULL")
        if not tables:
            execute("BEGIN IMMEDIATE")
            execute(f"PRAGMA application_id={APPLICATION_ID}")
            execute(f"PRAGMA user_version={FORMAT_VERSION}")
            for statement in _SCHEMA:
                execute(statement)
            execute("COMMIT")

    def _opening_error(self, error: sqlite3.Error) -> FireliteError:
        code = getattr(error, "sqlite_errorcode", None)  # Python's own error, for text that is not UTF-8, has none
        if code is None or code in _DAMAGE_ERRORS or code & 0xFF in _DAMAGE_ERRORS:
            return CorruptDataFile(self._path, str(error))
        return _failure(self._path, error, f"The data file {self._path} cannot be opened: {error}.")

    def load(self) -> Iterator[Record]:
        """Yield every stored document. Raises CorruptDataFile for a row that is damaged."""
        last_us = self.last_commit_us()
        try:
            rows = self._connection.execute("SELECT row, name, data, crc, create_us, update_us FROM documents")
            for row, name, data, crc, create_us, update_us in rows:
                if not _is_intact(name, data, crc, create_us, update_us, last_us):
                    raise CorruptDataFile(self._path, f"the checksum of {name} does not match")
                yield Record(name, data, create_us, update_us, row)
        except sqlite3.Error as error:
            raise self._opening_error(error) from error

    def last_commit_us(self) -> int:
        """Return the newest commit time written, in microseconds."""
        value = self._meta("last_commit_us")
        if value is None:
            raise CorruptDataFile(self._path, "it holds no last commit time")
        return value

    def lineage(self) -> int:
        """Return the lineage. A file of an earlier version gets one now."""
        value = self._meta("lineage")
        if value is None and not self._read_only:
            self.renew_lineage()
            value = self._meta("lineage")
        return value or 0

    def saved_indexes(self) -> SavedIndexes | None:
        """Return the indexes in the file."""
        return None if self._read_only else SavedIndexes(self._connection)

    def renew_lineage(self) -> None:
        """Store another lineage. Raises ResourceExhausted or Unavailable."""
        try:
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('lineage', ?)", (_random_lineage(),))
        except sqlite3.Error as error:
            raise self._opening_error(error) from error

    def _meta(self, key: str) -> int | None:
        try:
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._opening_error(error) from error
        if row is not None and not isinstance(row[0], int):
            raise CorruptDataFile(self._path, f"its {key} is no number")
        return None if row is None else row[0]

    def write(self, records: Sequence[Record], commit_us: int) -> None:
        """Make the newest versions durable, all or none.

        Raises ResourceExhausted or Unavailable, and FailedPrecondition if the file was opened read-only.
        """
        if self._read_only:
            raise FailedPrecondition(f"The data file {self._path} was opened read-only; open it without read_only.")
        puts = [(r.row, r.name, r.data, zlib.crc32(r.data), r.create_us, r.update_us) for r in records if r.data]
        gone = [(record.row,) for record in records if not record.data]
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)", puts)
            connection.executemany("DELETE FROM documents WHERE row = ?", gone)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'last_commit_us'", (commit_us,))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            # SQLite may have rolled back already; then this statement fails.
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            text = f"Writing {self._path} failed: {error}. Nothing of this commit was kept."
            raise _failure(self._path, error, text) from error

    def copy_to(self, target: Path) -> None:
        """Copy the file as it was opened to a new file. Raises ResourceExhausted or Unavailable."""
        try:
            with closing(sqlite3.connect(target)) as copy:
                self._connection.backup(copy)
        except sqlite3.Error as error:
            raise _failure(target, error, f"Copying {self._path} to {target} failed: {error}.") from error

    def close(self) -> None:
        """Merge the log into the file and close it."""
        self._connection.close()


def _random_lineage() -> int:
    return secrets.randbits(63)  # SQLite's integers are signed


def _failure(path: Path, error: sqlite3.Error, text: str) -> FireliteError:
    """Return DiskFull, or Unavailable with the text."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL or is_full(path.parent):
        return DiskFull(path)
    return Unavailable(text)


def _is_intact(name: object, data: object, crc: object, create_us: object, update_us: object, last_us: int) -> bool:
    """Return True if a row has the types, the checksum, and the name inside of the checked content, of a document."""
    if not (isinstance(name, str) and isinstance(data, bytes) and zlib.crc32(data) == crc):
        return False
    if not (isinstance(create_us, int) and isinstance(update_us, int) and 0 < create_us <= update_us <= last_us):
        return False
    # A serialized Document begins with the tag and the length of its name, in one or two bytes, then the name.
    encoded = name.encode("utf-8", "surrogatepass")
    return data.startswith(encoded, 2 if len(encoded) < _ONE_BYTE_LENGTHS else 3)
