"""The official AsyncClient on a database in this process, without sockets.

Everything that leans on private names of google-cloud-firestore is in this module: the transport's stub table
(``_stubs``, ``_wrapped_methods``), and the client's ``_transport`` and ``_firestore_api_internal``.
``tests/unit/firelite/test_inprocess.py`` fails when a release renames one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from google.api_core import exceptions as core_exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.services.firestore.async_client import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports.base import FirestoreTransport
from google.cloud.firestore_v1.services.firestore.transports.grpc_asyncio import FirestoreGrpcAsyncIOTransport

from fireswarm.firelite.database import Database
from fireswarm.firelite.errors import FireliteError, Unimplemented
from fireswarm.firelite.methods import METHODS, Method
from fireswarm.firelite.service import Service
from fireswarm.firelite.status import CODES

DEFAULT_PROJECT = "fireswarm-local"


def connect(db: Database, project: str = DEFAULT_PROJECT, database: str = "(default)") -> AsyncClient:
    """An AsyncClient on the database; use it on one event loop, as any AsyncClient.

    ``FIRESTORE_EMULATOR_HOST`` does not matter to it.
    """
    client = AsyncClient(project=project, credentials=AnonymousCredentials(), database=database)
    transport = InProcessTransport(Service(db))
    setattr(client, "_transport", transport)  # noqa: B010 - pyright refuses the assignment of a private name
    setattr(client, "_firestore_api_internal", FirestoreAsyncClient(transport=transport))  # noqa: B010 - as above
    return client


class InProcessTransport(FirestoreGrpcAsyncIOTransport):
    """A transport whose stubs call the service directly."""

    def __init__(self, service: Service) -> None:
        self._ignore_credentials = True
        FirestoreTransport.__init__(self, host="firelite.invalid")
        self._stubs = {method.attribute: _stub(service, method) for method in METHODS}
        self._stubs.update(dict.fromkeys(_OPERATIONS, _no_operations))
        self._wrap_with_kind = True
        self._prep_wrapped_messages(None)

    @property
    def kind(self) -> str:
        """Any name but ``grpc_asyncio``: that one makes api-core expect gRPC call objects from the stubs."""
        return "inprocess"

    def close(self) -> Any:
        """Nothing to close; awaitable, as the gRPC transport's."""
        return _nothing()


# google.longrunning.Operations, which the transport carries as well; only the admin API starts any.
_OPERATIONS = ("cancel_operation", "delete_operation", "get_operation", "list_operations")


async def _no_operations(*_: Any, **__: Any) -> Any:
    raise api_error(Unimplemented("firelite does not implement long-running operations (google.longrunning)."))


async def _nothing() -> None:
    return None


def api_error(error: FireliteError) -> core_exceptions.GoogleAPICallError:
    """What the client would have raised had the error come over gRPC; its retry rules go by the class."""
    return core_exceptions.from_grpc_status(CODES[error.code], error.message)


def _stub(service: Service, method: Method) -> Callable[..., Awaitable[Any]]:
    implementation = getattr(service, method.attribute)
    wrap = method.response.wrap
    unwrap = method.request.pb

    async def unary(request: Any, **_: Any) -> Any:
        try:
            response = await implementation(unwrap(request))
        except FireliteError as error:
            raise api_error(error) from None
        return None if response is None else wrap(response)

    async def stream(responses: AsyncGenerator[Any]) -> AsyncIterator[Any]:
        try:
            async with aclosing(responses):
                async for response in responses:
                    yield wrap(response)
        except FireliteError as error:
            raise api_error(error) from None

    async def unary_stream(request: Any, **_: Any) -> AsyncIterator[Any]:
        return stream(implementation(unwrap(request)))

    async def stream_stream(requests: Any, **_: Any) -> AsyncIterator[Any]:
        return stream(implementation(_unwrapped(requests, unwrap)))

    if method.streams_requests:
        return stream_stream
    return unary_stream if method.streams_responses else unary


async def _unwrapped(requests: Any, unwrap: Callable[[Any], Any]) -> AsyncIterator[Any]:
    if hasattr(requests, "__aiter__"):
        async for request in requests:
            yield unwrap(request)
    else:
        for request in requests:
            yield unwrap(request)
