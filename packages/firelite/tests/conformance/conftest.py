"""The backends every conformance test runs on.

``inprocess`` and ``grpc`` are firelite's two interfaces. If FIRESTORE_EMULATOR_HOST is set, ``emulator`` runs the same
tests against the server it names, for example Google's emulator. Every test has a separate project.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from google.cloud.firestore import AsyncClient, Client

from conformance.clients import EXTERNAL_HOST, Says, close_client, make_client
from conformance.quirks import QUIRKS
from conformance.raw import Raw
from firelite.database import Database
from firelite.testing import serving
from firelite.wire.inprocess import connect
from firelite.wire.server import Server

EXTERNAL = ["emulator"] if EXTERNAL_HOST else []

LOOP_SCOPE = "session" if EXTERNAL else "function"
"""Against an external server all tests share one event loop: gRPC's poller may still hand events to the loop of
an earlier test. Otherwise each test has its own loop, since ``asyncio.run`` elsewhere unsets a shared one."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "quirk(name): Google's emulator differs here, see quirks.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect tests with the marker ``quirk`` to fail on the emulator."""
    for item in items:
        for marker in item.iter_markers("quirk"):
            quirk = QUIRKS[marker.args[0]]
            if _on_emulator(item):
                item.add_marker(pytest.mark.xfail(reason=f"{quirk.name}: {quirk.emulator}", strict=quirk.always))


def _on_emulator(item: pytest.Item) -> bool:
    callspec: Any = getattr(item, "callspec", None)
    return callspec is not None and "emulator" in callspec.params.values()


@pytest.fixture
def says(request: pytest.FixtureRequest) -> Says:
    """Return the pattern for a text in an error message; any text where the quirk ``message_texts`` applies."""
    differs = _on_emulator(request.node) and "message_texts" in QUIRKS
    return lambda text: "." if differs else text


@pytest.fixture(scope=LOOP_SCOPE)
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope=LOOP_SCOPE, autouse=bool(EXTERNAL))
async def one_loop(anyio_backend: str) -> AsyncIterator[None]:
    """Keep the event loop as long as the scope lasts."""
    yield


@pytest.fixture
def project() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def db() -> Iterator[Database]:
    with Database.open(None) as database:
        yield database


@pytest.fixture(params=["inprocess", "grpc", *EXTERNAL])
async def client(request: pytest.FixtureRequest, db: Database, project: str) -> AsyncIterator[AsyncClient]:
    """An AsyncClient on each backend."""
    async for made in _clients(request.param, db, project):
        yield made


@pytest.fixture(params=["inprocess", "grpc"])
async def lite(request: pytest.FixtureRequest, db: Database, project: str) -> AsyncIterator[AsyncClient]:
    """An AsyncClient on firelite only, for guarantees that Google's emulator does not give."""
    async for made in _clients(request.param, db, project):
        yield made


@pytest.fixture
def raw(client: AsyncClient) -> Raw:
    """The generated client on each backend."""
    return Raw(client)


@pytest.fixture
def raw_lite(lite: AsyncClient) -> Raw:
    """The generated client on firelite only."""
    return Raw(lite)


async def _clients(backend: str, db: Database, project: str) -> AsyncIterator[AsyncClient]:
    if backend == "inprocess":
        yield connect(db, project)
    elif backend == "grpc":
        async with Server(db) as server:
            made = make_client(AsyncClient, server.endpoint, project)
            yield made
            await close_client(made)
    else:
        made = make_client(AsyncClient, str(EXTERNAL_HOST), project)
        yield made
        await close_client(made)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """A firelite server in a thread, for clients that block."""
    with serving() as address:
        yield address


@pytest.fixture(params=["grpc", *EXTERNAL])
def sync_client(request: pytest.FixtureRequest, endpoint: str, project: str) -> Iterator[Client]:
    """A blocking Client on each backend that has a port."""
    made = make_client(Client, endpoint if request.param == "grpc" else str(EXTERNAL_HOST), project)
    yield made
    made.close()


CITIES: dict[str, dict[str, Any]] = {
    "bj": {"name": "Beijing", "country": "China", "population": 21_500_000, "regions": ["jingjinji", "hebei"]},
    "dc": {"name": "Washington", "country": "USA", "capital": True, "population": 680_000, "regions": ["east"]},
    "la": {"name": "Los Angeles", "country": "USA", "state": "CA", "population": 3_900_000, "regions": ["west", "soc"]},
    "sf": {"name": "San Francisco", "country": "USA", "state": "CA", "population": 860_000, "regions": ["west"]},
    "tok": {"name": "Tokyo", "country": "Japan", "capital": True, "population": 9_000_000, "regions": ["kanto"]},
    "void": {"state": None},
}


@pytest.fixture
async def cities(client: AsyncClient) -> Any:
    batch = client.batch()
    for key, city in CITIES.items():
        batch.set(client.collection("cities").document(key), city)
    await batch.commit()
    return client.collection("cities")
