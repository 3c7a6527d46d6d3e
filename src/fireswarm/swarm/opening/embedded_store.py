"""Open the file of the embedded store, serve it to other processes, and take it over from a process that has ended.

One process has the file open; the file's lock decides which one. A process that finds it served connects to the
server, and stands by: when the server has ended, however it ended, one of those that stand by serves the file at the
same address, where the clients of all others connect again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from firelite.errors import DataFileInUse, DiskFull, FireliteError
from fireswarm.errors import FireswarmError, StoreError, StoreFull, StoreUnavailable
from fireswarm.settings import Settings
from fireswarm.settings.run_folders import STATE_FOLDER, add_swarm_folders, make_state_folder
from fireswarm.swarm.opening.pipeline_files import data_path
from fireswarm.swarm.worker.task_groups import task_group

if TYPE_CHECKING:
    from firelite.database import Database
    from firelite.storage.versions import HistoryLimits

INDEXES_FILE = "firestore.indexes.json"

FILE_WAIT_SECONDS = 5.0
"""Maximum time to wait for a command that has the data file open; most commands need less than a second."""

FILE_POLL_SECONDS = 0.05

STAND_BY_SECONDS = 0.5
"""Time between two looks at the lock of a file that another process serves. A look takes some microseconds."""

MAX_SOCKET_PATH_BYTES = 100
"""The kernel's limit is 108 on Linux and 104 on macOS."""

DIGEST_CHARS = 16

logger = logging.getLogger(__name__)


def open_database(
    settings: Settings, *, memory: bool = False, nanoseconds: Callable[[], int] | None = None
) -> Database:
    """Open the embedded store's file, with enforced indexes. Raises DataFileInUse or another StoreError."""
    from firelite.database import Database
    from firelite.query.index_definitions import IndexSet

    indexes = IndexSet.load(data_path(settings, INDEXES_FILE))
    path = None if memory else settings.path(settings.store.data)
    try:
        if path is not None:
            make_state_folder(path.parent)
            add_swarm_folders(settings.path(STATE_FOLDER), *([path.parent] if path.parent != settings.root else []))
        return Database.open(path, indexes=indexes, clock=nanoseconds or time.time_ns, history=history_limits(settings))
    except DataFileInUse:
        raise
    except DiskFull as error:
        raise StoreFull(str(error)) from error
    except (FireliteError, OSError) as error:
        raise StoreError(str(error)) from error


def history_limits(settings: Settings) -> HistoryLimits:
    """Return the limits of the embedded store's old versions."""
    from firelite.storage.versions import HistoryLimits

    return HistoryLimits(settings.store.history_seconds, disk_bytes=settings.store.history_disk_bytes)


@contextlib.asynccontextmanager
async def serving(settings: Settings, *, port: int | None = None) -> AsyncGenerator[str]:
    """Serve the embedded store for other processes of this user; yields ``firelite://unix:PATH``.

    With *port*, the store listens on loopback, where every local user and every Firestore client can connect. If
    another process already serves this file, yields its address and stands by, see ``standing_by``. For another kind
    of store, yields the configured URI.
    """
    if settings.store.uri not in ("embedded", "memory"):
        yield settings.store.uri
        return
    async with contextlib.AsyncExitStack() as stack:
        try:
            database = stack.enter_context(await open_when_free(settings))
        except DataFileInUse as held:
            uri = await stack.enter_async_context(standing_by(settings, held))
        else:
            uri = await stack.enter_async_context(_listening(settings, database, port))
        yield uri


@contextlib.asynccontextmanager
async def standing_by(settings: Settings, held: DataFileInUse) -> AsyncGenerator[str]:
    """Yield the URI at which another process serves the file, and serve it there when that process has ended.

    Where it is served on a port, nobody takes it over: which users may connect, and with which token, was decided
    where the server was started. Nor does another user than the owner of the file, whom the socket would shut out.
    Raises StoreUnavailable if the process does not serve the file.
    """
    if not held.endpoint:
        raise StoreUnavailable(
            f"{held.path} is open in {held.holder}, which does not serve it, and did not end within "
            f"{FILE_WAIT_SECONDS:g} s. Wait for it to end, or end it{held.command}."
        ) from held
    uri = f"firelite://{held.endpoint}"
    if held.endpoint != f"unix:{_usual_socket(settings)}" or not _is_mine(settings.path(settings.store.data)):
        yield uri
        return
    async with task_group() as group:
        group.start_soon(_take_over, settings, held.endpoint)
        try:
            yield uri
        finally:
            group.cancel_scope.cancel()


async def _take_over(settings: Settings, endpoint: str) -> None:
    """Serve the file at *endpoint* as soon as no process has it open, until canceled. A failure is tried again."""
    from firelite.storage.lockfile import lock_path, read_endpoint

    path, said = settings.path(settings.store.data), ""
    while True:
        await anyio.sleep(STAND_BY_SECONDS)
        try:
            served = read_endpoint(path)
            if (
                served == endpoint or not path.exists() or not lock_path(path).exists()
            ):  # deleted by hand: not made again
                continue
            if served is not None:
                raise StoreUnavailable(f"it is served at {served} now: start this command again")
            with open_database(settings) as database:
                async with _listening(settings, database, None):
                    logger.info("the process that served %s has ended: this one serves it now", path)
                    await anyio.sleep_forever()
        except DataFileInUse:  # another one was faster, or a command has it open for a moment
            continue
        except (FireswarmError, FireliteError, OSError) as error:
            if str(error) != said:
                said = str(error)
                logger.warning("%s cannot be taken over: %s", path, said)


def _is_mine(path: Path) -> bool:
    """Return True if a file belongs to this user."""
    return sys.platform == "win32" or path.stat().st_uid == os.geteuid()


def served_elsewhere(settings: Settings) -> str:
    """Return the URI at which another process serves the embedded store, or ""."""
    if settings.store.uri != "embedded":
        return ""
    try:
        with open_database(settings):
            return ""
    except DataFileInUse as held:
        return f"firelite://{held.endpoint}" if held.endpoint else ""


@contextlib.asynccontextmanager
async def _listening(settings: Settings, database: Database, port: int | None) -> AsyncGenerator[str]:
    """Serve an open database on the port, or on the usual socket; yields its URI. Raises StoreError."""
    from firelite.wire.server import Server

    try:
        with _socket_place(settings) if port is None else contextlib.nullcontext() as path:
            server = Server(database, port=port or 0, path=path)
            await server.start()
            try:
                yield f"firelite://{server.endpoint}"
            finally:
                with anyio.CancelScope(shield=True):  # the socket is removed while the lock is held
                    await server.stop()
    except FireliteError as error:
        raise StoreError(str(error)) from error


def _socket_beside(settings: Settings) -> Path:
    """Return the path of a socket next to the data file."""
    data = settings.path(settings.store.data).resolve()
    return data.with_suffix(".sock") if data.suffix == ".db" else data.with_name(f"{data.name}.sock")


def _usual_socket(settings: Settings) -> Path:
    """Return the path of the store's socket: next to the data file, or in a folder of its own if it would be too long.

    Each process that serves the file listens there, so that clients find the next one.
    """
    beside = _socket_beside(settings)
    if len(os.fsencode(beside)) <= MAX_SOCKET_PATH_BYTES:
        return beside
    name = f"fireswarm-{hashlib.sha256(os.fsencode(beside)).hexdigest()[:DIGEST_CHARS]}"
    usual = Path(tempfile.gettempdir(), name, "store.sock")
    return usual if len(os.fsencode(usual)) <= MAX_SOCKET_PATH_BYTES else Path("/tmp", name, "store.sock")


@contextlib.contextmanager
def _socket_place(settings: Settings) -> Generator[Path | None]:
    """Yield a path for the store's socket: the usual one of an embedded store, else in a new folder.

    Yields None where gRPC has no Unix sockets.
    """
    if sys.platform == "win32":
        yield None
        return
    usual = _usual_socket(settings)
    if settings.store.uri == "embedded" and usual == _socket_beside(settings):
        yield usual
    elif settings.store.uri == "embedded" and _make_own_folder(usual.parent):
        yield usual  # the folder stays: in its place, another user would get the clients that connect again
    else:
        with tempfile.TemporaryDirectory(prefix="fireswarm-") as folder:
            yield Path(folder) / "store.sock"


def _make_own_folder(folder: Path) -> bool:
    """Create a folder that only this user can enter; False if another user was faster, or opened it to others."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
    found = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and found.st_uid == os.getuid() and not found.st_mode & 0o077


async def open_when_free(settings: Settings, nanoseconds: Callable[[], int] | None = None) -> Database:
    """Open the embedded store; wait for a command that has it open without serving it, since most end soon.

    Raises DataFileInUse if another process serves the file, or holds it longer than FILE_WAIT_SECONDS.
    """
    deadline = anyio.current_time() + FILE_WAIT_SECONDS
    while True:
        try:
            return open_database(settings, memory=settings.store.uri == "memory", nanoseconds=nanoseconds)
        except DataFileInUse as held:
            if held.endpoint or anyio.current_time() >= deadline:
                raise
        await anyio.sleep(FILE_POLL_SECONDS)
