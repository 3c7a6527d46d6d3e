"""One process a data file: an flock on ``<path>.lock``, which tells who holds it and where it serves.

The lock is the kernel's and goes with the process, however it ends; the JSON inside is only information.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from fireswarm.firelite.errors import DataFileInUse, Unavailable

# ``read_endpoint`` holds the lock for a few microseconds to see whether it is free; that is not a reason to give up.
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 0.01


class FileLock:
    """Holds ``<path>.lock`` until ``release``; raises DataFileInUse when another holder has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Unavailable(f"The lock file {_lock_path(path)} cannot be opened: {error.strerror}.") from error
        for _ in range(_ATTEMPTS):
            if _try_lock(self._descriptor):
                self.publish(None)
                return
            time.sleep(_ATTEMPT_SECONDS)
        holder = _read(self._descriptor)
        os.close(self._descriptor)
        raise DataFileInUse(path, holder.get("pid"), holder.get("endpoint"))

    def publish(self, endpoint: str | None) -> None:
        """Record where this process serves (``host:port``), or that it does not."""
        content = json.dumps({"pid": os.getpid(), "endpoint": endpoint}).encode()
        # Longer first, then cut: a reader never sees an empty file.
        os.pwrite(self._descriptor, content, 0)
        os.ftruncate(self._descriptor, len(content))

    def release(self) -> None:
        """Let the next process in; the lock file stays, for unlinking it would race with one that just opened it."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def read_endpoint(path: str | Path) -> str | None:
    """Address (``host:port``) served by the process that holds the data file, or None."""
    try:
        descriptor = os.open(_lock_path(Path(path)), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # When the lock is free, whatever the file says is left over from a process that died.
        return None if _try_lock(descriptor) else _read(descriptor).get("endpoint")
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _read(descriptor: int) -> dict[str, Any]:
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
