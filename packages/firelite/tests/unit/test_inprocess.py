"""The in-process transport, the private client names it relies on, and the imports of the package."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore_v1.services.firestore.async_client import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports.grpc_asyncio import FirestoreGrpcAsyncIOTransport

import firelite
from firelite.database import Database
from firelite.errors import FireliteError, Unavailable
from firelite.status import CODES
from firelite.wire.inprocess import InProcessTransport, api_error, connect
from firelite.wire.methods import METHODS
from firelite.wire.service import Service

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_client_uses_the_in_process_transport_that_connect_sets() -> None:
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


async def test_transport_can_be_closed_and_operations_are_unimplemented() -> None:
    with Database.open(None) as db:
        transport: Any = InProcessTransport(Service(db))
        with pytest.raises(exceptions.MethodNotImplemented, match="long-running"):
            await transport.get_operation({})
        await transport.close()


async def test_client_retries_a_retryable_error() -> None:
    class Flaky(Service):
        calls = 0

        async def commit(self, request: Any) -> Any:
            self.calls += 1
            if self.calls == 1:
                raise Unavailable("once")
            return await super().commit(request)

    with Database.open(None) as db:
        service = Flaky(db)
        client: Any = connect(db)
        client.attach(service)
        await client.document("c/a").set({"n": 1})
        assert service.calls == 2
        await client.document("c/a").set({"n": 2}, timeout=120)  # a timeout takes the slower code path
        assert service.calls == 3


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
    code = "import sys, firelite; print(sorted({'grpc', 'google', 'sqlite3', 'asyncio'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_can_be_resolved() -> None:
    for name in firelite.__all__:
        assert getattr(firelite, name) is not None
    with pytest.raises(AttributeError):
        _ = firelite.nothing_of_the_kind  # pyright: ignore[reportAttributeAccessIssue] - it is not there


async def test_async_bulk_writer_and_recursive_delete_work_in_process() -> None:
    with Database.open(None) as db:
        client: Any = connect(db)
        writer = client.bulk_writer()
        for number in range(45):
            writer.set(client.document(f"c/{number}"), {"n": number})
            writer.set(client.document(f"c/{number}/deep/er"), {"n": number})
        writer.close()
        assert db.store.live == 90
        assert await client.recursive_delete(client.collection("c")) == 90
        assert db.store.live == 0


async def test_bulk_write_to_a_locked_document_is_aborted_without_waiting() -> None:
    with Database.open(None) as db:
        client: Any = connect(db)
        failures: list[int] = []

        def on_error(failure: Any, _: Any) -> bool:
            failures.append(failure.code)
            return False

        transaction = client.transaction()
        await transaction._begin()
        await client.document("c/locked").get(transaction=transaction)
        writer = client.bulk_writer()
        writer.on_write_error(on_error)
        writer.set(client.document("c/locked"), {})
        writer.create(client.document("c/free"), {})
        writer.create(client.document("c/none"), {})
        writer.update(client.document("c/absent"), {"n": 1})
        writer.close()
        assert sorted(failures) == [5, 10]
        assert db.store.live == 2


def test_blocking_copy_of_an_in_process_client_cannot_read() -> None:
    with Database.open(None) as db:
        blocking = connect(db)._to_sync_copy()  # pyright: ignore[reportPrivateUsage] - what BulkWriter calls
        with pytest.raises(exceptions.MethodNotImplemented, match="batch_get_documents"):
            blocking.document("c/a").get()
