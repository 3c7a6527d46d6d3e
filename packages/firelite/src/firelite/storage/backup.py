"""Copy a data file while it is in use, and put a copy in the place of a data file."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

from firelite.errors import FireliteError
from firelite.storage.datafile import SqliteStorage
from firelite.storage.lockfile import FileLock


def back_up(path: Path, target: Path) -> int:
    """Copy the last commit of a data file to a new file. Returns the number of documents.

    Another process may have the file open and commit meanwhile. Every document of the copy is verified. Raises
    CorruptDataFile, ResourceExhausted, or Unavailable if one of the files cannot be opened.
    """
    with closing(SqliteStorage(path, read_only=True)) as storage:
        storage.copy_to(target)
    return verify(target)


def verify(path: Path) -> int:
    """Read every document of a data file and return their number. Raises CorruptDataFile for a damaged one."""
    with closing(SqliteStorage(path, read_only=True)) as storage:
        return sum(1 for _ in storage.load())


def put_in_place(copy: Path, lock: FileLock) -> None:
    """Move a verified copy to the path of the lock, whose holder replaces the data file there.

    The copy must be on the same file system. A crash leaves the old data file or the new one. Listeners start over,
    since the copy may lack commits that they have seen.
    """
    path = lock.path
    with closing(SqliteStorage(copy)) as storage:
        storage.renew_lineage()
    with suppress(FireliteError):
        SqliteStorage(path).close()  # merges the log, so that the old file is complete without it
    for log in ("-wal", "-shm"):
        # SQLite would apply the log of the old file to the new one.
        path.with_name(path.name + log).unlink(missing_ok=True)
    copy.replace(path)
