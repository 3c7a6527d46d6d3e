"""The gRPC server: grpc.aio on the loopback interface, for other processes and other languages."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from fireswarm.firelite.database import Database
from fireswarm.firelite.errors import FireliteError, PortInUse, Unavailable
from fireswarm.firelite.wire.methods import METHODS, Method
from fireswarm.firelite.wire.service import Service

# A document may have 1 MiB and a request 10 MiB; a stream sends one document per message.
MESSAGE_MAX_BYTES = 16 * 1024 * 1024
# Below any client's keepalive (the official ones use 30 s and more).
PING_INTERVAL_MIN_MILLISECONDS = 5_000
# How long a stop waits for calls to finish; listeners never finish by themselves.
STOP_GRACE_SECONDS = 0.2

_STATUS = {status.name: status for status in grpc.StatusCode}


class Server:
    """Serves a database: ``async with Server(db) as server: server.port``.

    Raises PortInUse if the address is in use. The database stays open when the server stops.
    """

    def __init__(self, db: Database, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.port = port
        self._database = db
        self._server: Any = None

    @property
    def endpoint(self) -> str:
        """``host:port``, the form of FIRESTORE_EMULATOR_HOST."""
        return f"{self.host}:{self.port}"

    async def start(self) -> int:
        """Listen and return the port. Raises PortInUse, or Unavailable for a host that is not this machine's."""
        _check_address(self.host, self.port)
        # Without SO_REUSEPORT, a second server on the port fails instead of taking every other connection.
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
            ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
            # Clients that listen ping a silent connection; by default, gRPC would close the connection for that.
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_INTERVAL_MIN_MILLISECONDS),
            ("grpc.http2.max_ping_strikes", 0),
        ]
        server = grpc.aio.server(options=options)
        service = Service(self._database)
        handlers = {method.rpc: _handler(service, method) for method in METHODS}
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("google.firestore.v1.Firestore", handlers),)
        )
        try:
            self.port = server.add_insecure_port(self.endpoint)
        except RuntimeError as error:
            raise PortInUse(self.host, self.port) from error
        await server.start()
        self._server = server
        self._database.publish_endpoint(self.endpoint)
        self._database.expiry.start()
        return self.port

    async def stop(self) -> None:
        """End all calls and release the port."""
        if self._server is not None:
            self._database.publish_endpoint(None)
            await self._server.stop(STOP_GRACE_SECONDS)
            self._server = None

    async def serve_forever(self) -> None:
        """Wait until the server stops."""
        await self._server.wait_for_termination()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _check_address(host: str, port: int) -> None:
    """Raise PortInUse or Unavailable if the address cannot be bound."""
    # gRPC logs a used port and raises a bare RuntimeError; testing first gives a clear error.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(host, port) from None
            raise Unavailable(f"Cannot listen on {host}:{port}: {error.strerror}.") from error


def _handler(service: Service, method: Method) -> Any:
    """Return the gRPC handler of one RPC, which calls the service and converts errors."""
    implementation = getattr(service, method.attribute)
    messages = {
        "request_deserializer": method.request.pb().FromString,
        "response_serializer": method.response.pb().SerializeToString,
    }
    empty = method.response.pb()

    async def unary(request: Any, context: Any) -> Any:
        try:
            response = await implementation(request)
        except FireliteError as error:
            return await context.abort(_STATUS[error.code], error.message)
        return empty() if response is None else response

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async with aclosing(implementation(request)) as responses:
                async for response in responses:
                    yield response
        except FireliteError as error:
            await context.abort(_STATUS[error.code], error.message)

    if method.streams_requests:
        return grpc.stream_stream_rpc_method_handler(stream, **messages)
    if method.streams_responses:
        return grpc.unary_stream_rpc_method_handler(stream, **messages)
    return grpc.unary_unary_rpc_method_handler(unary, **messages)
