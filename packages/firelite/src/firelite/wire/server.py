"""The gRPC server: grpc.aio on loopback or on a Unix socket, for other processes and other languages."""

from __future__ import annotations

import errno
import hmac
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from firelite.database import Database
from firelite.errors import FireliteError, InvalidArgument, PortInUse, Unavailable
from firelite.wire.methods import METHODS, Method
from firelite.wire.service import Service

# A document may have 1 MiB and a request 10 MiB; a stream sends one document per message.
MESSAGE_MAX_BYTES = 16 * 1024 * 1024
# Below the keepalive of any client (the official ones use 30 s and more).
PING_INTERVAL_MIN_MILLISECONDS = 5_000
# Time that a stop waits for calls to finish; listeners never finish by themselves.
STOP_GRACE_SECONDS = 0.2

_STATUS = {status.name: status for status in grpc.StatusCode}


class Server:
    """Serves a database: ``async with Server(db) as server: server.port``.

    With *path*, it listens on a Unix socket that only this user can connect to. With *token*, calls need the metadata
    ``authorization: Bearer TOKEN``. Raises PortInUse if the address is in use. The database stays open when the
    server stops.
    """

    def __init__(
        self, db: Database, host: str = "127.0.0.1", port: int = 0, *, path: Path | None = None, token: str = ""
    ) -> None:
        self.host = host
        self.port = port
        self.path = path
        self._token = token
        self._database = db
        self._server: Any = None

    @property
    def endpoint(self) -> str:
        """``host:port`` or ``unix:PATH``, the forms of FIRESTORE_EMULATOR_HOST."""
        return f"{self.host}:{self.port}" if self.path is None else f"unix:{self.path}"

    async def start(self) -> int:
        """Listen and return the port. Raises PortInUse, or Unavailable for a host that is not this machine's."""
        if self.path is None:
            _check_address(self.host, self.port)
        else:
            _remove_socket(self.path)
        # Without SO_REUSEPORT, a second server on the port fails instead of taking every other connection.
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
            ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
            # Listening clients ping a silent connection; by default, gRPC would close the connection for that.
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_INTERVAL_MIN_MILLISECONDS),
            ("grpc.http2.max_ping_strikes", 0),
        ]
        server = grpc.aio.server(options=options)
        service = Service(self._database)
        handlers = {method.rpc: _handler(service, method, self._token) for method in METHODS}
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("google.firestore.v1.Firestore", handlers),)
        )
        mask = os.umask(0o177) if self.path is not None else None  # the socket is never accessible to others
        try:
            port = server.add_insecure_port(self.endpoint)
        except RuntimeError as error:
            if self.path is not None:
                raise Unavailable(f"Cannot listen on {self.path}: {error}.") from error
            raise PortInUse(self.host, self.port) from error
        finally:
            if mask is not None:
                os.umask(mask)
        self.port = port if self.path is None else 0
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
            if self.path is not None:
                _remove_socket(self.path)

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


def _remove_socket(path: Path) -> None:
    """Remove the socket of an earlier process: the lock of the data file is held, so nothing serves there."""
    try:
        if path.is_socket():
            path.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"Cannot listen on {path}: {error.strerror}.") from error


async def _check_token(context: Any, token: str) -> None:
    """End the call with UNAUTHENTICATED unless it has the token."""
    given = str(dict(context.invocation_metadata() or ()).get("authorization", ""))
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        await context.abort(
            grpc.StatusCode.UNAUTHENTICATED, "This store needs a token: send it as `authorization: Bearer TOKEN`."
        )


def _parse(message: Any, content: bytes) -> Any:
    """Return the request. Raises InvalidArgument if *content* is not one."""
    try:
        return message.FromString(content)
    except DecodeError as error:
        raise InvalidArgument(f"The request is not a {message.DESCRIPTOR.full_name}: {error}.") from error


async def _parse_each(parse: Callable[[bytes], Any], requests: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    async for content in requests:
        yield parse(content)


def _handler(service: Service, method: Method, token: str) -> Any:
    """Return the gRPC handler of one RPC, which calls the service and converts errors."""
    implementation = getattr(service, method.attribute)
    messages = {
        "response_serializer": method.response.pb().SerializeToString
    }  # gRPC would report a malformed request as INTERNAL
    parse, empty = partial(_parse, method.request.pb()), method.response.pb()

    async def unary(request: Any, context: Any) -> Any:
        if token:
            await _check_token(context, token)
        try:
            response = await implementation(parse(request))
        except FireliteError as error:
            return await context.abort(_STATUS[error.code], error.message)
        return empty() if response is None else response

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        if token:
            await _check_token(context, token)
        try:
            given = _parse_each(parse, request) if method.streams_requests else parse(request)
            async with aclosing(implementation(given)) as responses:
                async for response in responses:
                    yield response
        except FireliteError as error:
            await context.abort(_STATUS[error.code], error.message)

    if method.streams_requests:
        return grpc.stream_stream_rpc_method_handler(stream, **messages)
    if method.streams_responses:
        return grpc.unary_stream_rpc_method_handler(stream, **messages)
    return grpc.unary_unary_rpc_method_handler(unary, **messages)
