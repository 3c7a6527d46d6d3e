"""The private names the in-process transport leans on, and that the package stays light to import."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore_v1.services.firestore.async_client import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports.grpc_asyncio import FirestoreGrpcAsyncIOTransport

import fireswarm.firelite as firelite
from fireswarm.firelite.database import Database
from fireswarm.firelite.errors import FireliteError
from fireswarm.firelite.inprocess import InProcessTransport, api_error, connect
from fireswarm.firelite.methods import METHODS
from fireswarm.firelite.service import Service
from fireswarm.firelite.status import CODES

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_the_client_uses_what_connect_sets() -> None:
    with Database.open(None) as db:
        client: Any = connect(db, "p", "other")
        assert isinstance(client._firestore_api, FirestoreAsyncClient)
        assert client._firestore_api.transport is client._transport
        assert isinstance(client._transport, InProcessTransport)
        assert client._database_string == "projects/p/databases/other"


def test_every_rpc_of_the_transport_has_a_stub() -> None:
    with Database.open(None) as db:
        transport: Any = InProcessTransport(Service(db))
        wrapped = {getattr(method, "__name__", "") for method in transport._wrapped_methods}
        assert len(transport._wrapped_methods) >= len(METHODS)
        for method in METHODS:
            assert hasattr(FirestoreGrpcAsyncIOTransport, method.attribute)
            assert getattr(transport, method.attribute) is transport._stubs[method.attribute]
        assert wrapped
        assert transport.kind != "grpc_asyncio"


async def test_transports_close_and_operations_are_unimplemented() -> None:
    with Database.open(None) as db:
        transport: Any = InProcessTransport(Service(db))
        with pytest.raises(exceptions.MethodNotImplemented, match="long-running"):
            await transport.get_operation({})
        await transport.close()


async def test_a_retryable_error_is_retried_by_the_client() -> None:
    class Flaky(Service):
        calls = 0

        async def commit(self, request: Any) -> Any:
            self.calls += 1
            if self.calls == 1:
                from fireswarm.firelite.errors import Unavailable

                raise Unavailable("once")
            return await super().commit(request)

    with Database.open(None) as db:
        service = Flaky(db)
        client: Any = connect(db)
        client._firestore_api_internal = FirestoreAsyncClient(transport=InProcessTransport(service))
        await client.document("c/a").set({"n": 1})
        assert service.calls == 2


def subclasses(cls: type[FireliteError]) -> list[type[FireliteError]]:
    return [found for child in cls.__subclasses__() for found in (child, *subclasses(child))]


def test_every_error_has_a_grpc_code_and_an_exception() -> None:
    for cls in subclasses(FireliteError):
        error = cls.__new__(cls)
        FireliteError.__init__(error, "why")
        mapped = api_error(error)
        assert mapped.message == "why"
        assert mapped.grpc_status_code is not None
        assert mapped.grpc_status_code.value[0] == CODES[cls.code]


def test_importing_the_package_imports_no_grpc() -> None:
    code = "import sys, fireswarm.firelite; print(sorted({'grpc', 'google', 'sqlite3', 'asyncio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_resolve() -> None:
    for name in firelite.__all__:
        assert getattr(firelite, name) is not None
    with pytest.raises(AttributeError):
        _ = firelite.nothing_of_the_kind  # pyright: ignore[reportAttributeAccessIssue] - it is not there
