"""Servers that come back on the same port with another state."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firelite.database import Database
from firelite.storage.backup import back_up, put_in_place
from firelite.storage.lockfile import FileLock
from firelite.wire import admin


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(port: int, path: Path | None) -> Generator[str]:
    data = () if path is None else ("--data", str(path))
    command = [sys.executable, "-m", "firelite", "serve", "--port", str(port), *data]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["endpoint"]
        finally:
            server.kill()


def wipe(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def reset(path: Path) -> None:
    with Database.open(path) as database:
        admin.reset(database)


def restore(path: Path) -> None:
    lock = FileLock(path)
    put_in_place(path.with_name("backup"), lock)
    lock.release()


def copy_back(path: Path) -> None:
    wipe(path)
    shutil.copy(path.with_name("backup"), path)


def restart(_: Path) -> None:
    pass


CHANGES: list[Callable[[Path], None]] = [wipe, reset, restore, copy_back, restart]


def write_before(client: Any, path: Path | None) -> None:
    """A state with c/old; then a backup, which the listener's state is ahead of."""
    client.document("c/old").set({"x": 1})
    if path is not None:
        back_up(path, path.with_name("backup"))
    client.document("c/a").set({"x": 1})
    client.document("c/b").set({"x": 2})
