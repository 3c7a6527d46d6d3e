"""Serve the application with uvicorn. At shutdown, event streams end and requests are finished."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Generator, Sequence

import anyio
import uvicorn
from starlette.types import ASGIApp

from fireswarm.api.connection import BoundedConnection
from fireswarm.api.middleware import LOOPBACK_HOSTS, is_loopback
from fireswarm.errors import ConfigError

GRACE_SECONDS = 5
"""Time limit for requests at shutdown: Cloud Run kills ten seconds after SIGTERM."""

MAX_CONNECTIONS = 500
"""Maximum number of connections and of requests in progress; more requests get 503."""


class _Server(uvicorn.Server):
    """Leaves signals to the caller, since streams must end before the server stops."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket at *host*. Raises ConfigError with the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on --host {host} --port {port}: {error}") from error


def address_of(listening: socket.socket) -> str:
    """Return the URL of the API."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def hosts_of(listening: socket.socket) -> frozenset[str] | None:
    """Return the Host names to accept: of loopback, or None for any at an address that others reach."""
    address = listening.getsockname()[0]
    return LOOPBACK_HOSTS | {address} if is_loopback(address) else None


async def serve(
    application: ASGIApp,
    listening: socket.socket,
    stop: anyio.Event,
    ready: Callable[[], None],
    stopping: Sequence[anyio.Event],
) -> None:
    """Serve until *stop* is set; *ready* is called once connections are accepted.

    The events *stopping* are set first, so that endless streams end before the server waits for its requests.
    """
    config = uvicorn.Config(
        application,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)

    async def end() -> None:
        await stop.wait()
        for event in stopping:
            event.set()
        server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(end)
        ready()
        try:
            await server.serve(sockets=[listening])
        finally:
            _close(server)
        group.cancel_scope.cancel()


def _close(server: uvicorn.Server) -> None:
    """Close what a canceled server leaves open: otherwise the end of its event loop waits for that, for ever."""
    for listener in server.servers if server.started else ():
        listener.close()
    for connection in list(server.server_state.connections):
        if (transport := getattr(connection, "transport", None)) is not None:
            transport.abort()
