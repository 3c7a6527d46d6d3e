"""Fixtures for your tests: a Firestore for each test, in this process or served. Loaded by pytest as a plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from google.cloud.firestore import AsyncClient

DATA_FILE = "firelite.db"
SERVED_FILE = "firelite-served.db"
"""A different file from DATA_FILE: a test may use both fixtures, and a file can be open in only one database."""


@pytest.fixture
def firelite_client(tmp_path: Path) -> Iterator[AsyncClient]:
    """The official AsyncClient on a database in this process, with a data file in ``tmp_path``. Needs no sockets."""
    from firelite.database import Database
    from firelite.wire.inprocess import connect

    with Database.open(tmp_path / DATA_FILE) as database:
        yield connect(database)


@pytest.fixture
def firelite_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with a data file in ``tmp_path``, also in ``FIRESTORE_EMULATOR_HOST``.

    Official clients in the test, or in a process that it starts, use this server.
    """
    with serving(tmp_path / SERVED_FILE) as endpoint:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", endpoint)
        yield endpoint


@contextmanager
def serving(path: Path | None = None) -> Generator[str]:
    """Serve a data file, or memory without a path, from a thread; yields the address, ``host:port``.

    Raises a FireliteError if the file cannot be opened.
    """
    from firelite.database import Database
    from firelite.wire.server import Server

    started: Future[tuple[str, Callable[[], object]]] = Future()

    async def serve() -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        with Database.open(path) as database:
            async with Server(database) as server:
                started.set_result((server.endpoint, lambda: loop.call_soon_threadsafe(stopping.set)))
                await stopping.wait()

    with ThreadPoolExecutor(1, thread_name_prefix="firelite") as pool:
        ended = pool.submit(lambda: asyncio.run(serve()))
        outcomes: list[Future[Any]] = [started, ended]
        wait(outcomes, return_when=FIRST_COMPLETED)
        if not started.done():
            ended.result()
        endpoint, stop = started.result()
        try:
            yield endpoint
        finally:
            stop()
            ended.result()
