"""Calls to a store that does not answer end with the scope that they run in. ``test_cancellation`` runs this module."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import anyio
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import AsyncClient

from fireswarm.clocks import ServerClock
from fireswarm.contracts.ports import Create, Query
from fireswarm.errors import StoreUnavailable
from fireswarm.storage.firestore.channel import close
from fireswarm.storage.firestore.store import FirestoreStore

pytestmark = pytest.mark.anyio

Call = Callable[[FirestoreStore], Coroutine[Any, Any, object]]
DELAYS = (0.0, 0.001, 0.01, 0.1)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for all tests of the module: gRPC delivers the end of a canceled call late."""
    return "asyncio"


@contextlib.asynccontextmanager
async def connected() -> AsyncGenerator[AsyncClient]:
    """Yield a client of a server that accepts connections and never answers."""
    with socket.socket() as server, pytest.MonkeyPatch.context() as patched:
        server.bind(("127.0.0.1", 0))
        server.listen(100)
        patched.setenv("FIRESTORE_EMULATOR_HOST", f"127.0.0.1:{server.getsockname()[1]}")
        client = AsyncClient(project="silent", credentials=AnonymousCredentials())
        yield client
        await close(client)


@pytest.fixture(scope="module")
async def silent() -> AsyncGenerator[FirestoreStore]:
    async with connected() as client:
        yield FirestoreStore(client, ServerClock())


async def listen(store: FirestoreStore) -> None:
    async with store.listen(Query("c")) as snapshots:
        async for _ in snapshots:
            raise AssertionError("the server answers nothing")


CALLS: dict[str, Call] = {
    "get": lambda store: store.get("c/d"),
    "query": lambda store: store.query(Query("c")),
    "count": lambda store: store.count(Query("c")),
    "commit": lambda store: store.commit([Create("c/d", {})]),
    "listen": listen,
}


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("call", CALLS)
async def test_deadline_ends_a_call(silent: FirestoreStore, call: str, delay: float) -> None:
    for _ in range(5):
        with anyio.move_on_after(delay) as scope:
            await CALLS[call](silent)
        assert scope.cancelled_caught


@pytest.mark.parametrize("call", CALLS)
async def test_canceled_group_ends_a_call(silent: FirestoreStore, call: str) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(CALLS[call], silent)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("call", CALLS)
async def test_canceled_task_stays_canceled(silent: FirestoreStore, call: str) -> None:
    async def run() -> None:
        await CALLS[call](silent)

    task = asyncio.create_task(run())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_call_that_the_connection_ends_is_an_error_of_the_store() -> None:
    errors: list[Exception] = []

    async with connected() as client, anyio.create_task_group() as group:

        async def get() -> None:
            try:
                await FirestoreStore(client, ServerClock()).get("c/d")
            except Exception as error:
                errors.append(error)

        group.start_soon(get)
        await anyio.wait_all_tasks_blocked()
        await close(client)
    assert isinstance(errors[0], StoreUnavailable)
