"""One process per data file: an flock on ``<path>.lock``, which also has the process id and address of the holder.

The kernel releases the lock when the process ends, for any reason. The JSON in the file is only information.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from firelite.disk import means_full
from firelite.errors import DataFileInUse, DiskFull, FireliteError, Unavailable

# ``read_endpoint`` holds the lock for a few microseconds as a test; a retry succeeds after that.
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 0.01


class FileLock:
    """Holds ``<path>.lock`` until ``release``. Raises DataFileInUse if another process holds it."""

    def __init__(self, path: Path) -> None:
        """Take the lock. Raises DataFileInUse, or Unavailable if the lock file cannot be opened."""
        self.path = path
        self.is_new = not lock_path(path).exists()  # nobody has opened the data file before
        try:
            self._descriptor = os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _failure(path, error) from error
        for _ in range(_ATTEMPTS):
            if _try_lock(self._descriptor):
                try:
                    self.publish(None)
                except FireliteError:
                    os.close(self._descriptor)
                    raise
                return
            time.sleep(_ATTEMPT_SECONDS)
        holder = _read(self._descriptor)
        os.close(self._descriptor)
        raise DataFileInUse(path, holder.get("pid"), holder.get("endpoint"))

    def publish(self, endpoint: str | None) -> None:
        """Record the address (``host:port``) at which this process serves, or None. Raises DiskFull or Unavailable."""
        content = json.dumps({"pid": os.getpid(), "endpoint": endpoint}).encode()
        try:
            # Write first, then truncate, so that a reader never sees an empty file.
            os.pwrite(self._descriptor, content, 0)
            os.ftruncate(self._descriptor, len(content))
        except OSError as error:
            raise _failure(self.path, error) from error

    def release(self) -> None:
        """Release the lock. The lock file remains: deleting it would race with a process that just opened it."""
        try:
            os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)


def read_endpoint(path: str | Path) -> str | None:
    """Return the address (``host:port``) served by the process that holds the data file, or None."""
    try:
        descriptor = os.open(lock_path(Path(path)), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # If the lock is free, the content is from a dead process.
        return None if _try_lock(descriptor) else _read(descriptor).get("endpoint")
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_path(path: Path) -> Path:
    """Return the lock file of a data file."""
    return path.with_name(path.name + ".lock")


def _failure(path: Path, error: OSError) -> FireliteError:
    if means_full(error):
        return DiskFull(path)
    return Unavailable(f"The lock file {lock_path(path)} cannot be written: {error.strerror}.")


def _read(descriptor: int) -> dict[str, Any]:
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
