"""HTTP client for the public internet and for hosts that the operator allows by name.

The address is checked when the connection is made, and the connection goes to the checked address, so DNS rebinding
has no effect. A redirect to another host is a new connection, so it is checked too. TLS still verifies the
certificate for the host's name. Proxies of the environment are not used, since the address behind a proxy cannot be
checked.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any, cast

import anyio
import httpcore2
import httpx2

from fireswarm.capabilities.web.addresses import METADATA_NAMES, as_number, host_name, why_refused
from fireswarm.errors import HostRefused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, best first; raises OSError if there is none."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system's resolver."""
    records = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in records))


@dataclass(frozen=True, slots=True)
class Guard:
    """Allowed destinations: the public internet, and ``allow_hosts``, each ``name`` or ``name:port``."""

    allow_hosts: frozenset[str] = frozenset()
    resolve: Resolve = resolve

    @classmethod
    def of(cls, allow_hosts: Iterable[str], resolver: Resolve | None = None) -> Guard:
        """Parse the operator's list."""
        return cls(frozenset(host.strip().lower() for host in allow_hosts), resolver or resolve)

    def allows(self, host: str, port: int) -> bool:
        """Return True for a host that the operator allowed."""
        name = host_name(host)
        return not self.allow_hosts.isdisjoint({name, _host_in_url(name), f"{_host_in_url(name)}:{port}"})

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses to connect to. Raises HostRefused if one of them is blocked; OSError without any."""
        name = host_name(host)
        allowed = self.allows(host, port)
        if name in METADATA_NAMES and not allowed:
            raise HostRefused(_refusal(name, port, "", "metadata"))
        number = as_number(name)
        resolved = [str(number)] if number is not None else await self.resolve(name, port)
        if not resolved:
            raise OSError(f"{name} has no address")
        if not allowed:
            for address in resolved:
                if reason := why_refused(ip_address(address.partition("%")[0])):
                    raise HostRefused(_refusal(name, port, address, reason))
        return resolved


def _host_in_url(name: str) -> str:
    """Return a host as in a URL: an IPv6 address in brackets."""
    return f"[{name}]" if ":" in name else name


def _refusal(name: str, port: int, address: str, reason: str) -> str:
    where = f"{address}, " if address and address != name else ""
    return (
        f"{name} is {where}a {reason} address and is blocked; the operator can allow it: "
        f'allow_hosts: ["{_host_in_url(name)}:{port}"] in the capability\'s configuration'
    )


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only to checked addresses."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._real = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class has it so
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve, check, connect; all within *timeout* seconds."""
        try:
            with anyio.fail_after(timeout):
                addresses = await self._guard.addresses(host, port)
                for address in addresses[:-1]:
                    with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                        share = None if timeout is None else timeout / len(addresses)
                        return await self._real.connect_tcp(address, port, share, local_address, socket_options)
                return await self._real.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"cannot connect to {host} within {timeout:g} s") from error
        except OSError as error:
            raise httpcore2.ConnectError(f"{host}: {error.strerror or error}") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class has it so
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raise HostRefused: local sockets are not internet hosts."""
        raise HostRefused(f"{path}: connections to local sockets are blocked")

    async def sleep(self, seconds: float) -> None:
        """Sleep between attempts."""
        await anyio.sleep(seconds)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Transport of an ``httpx2.AsyncClient``, redirects included. Raises HostRefused."""

    def __init__(self, guard: Guard, ssl_context: SSLContext | None = None) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context or _certificates(),
            network_backend=_GuardedBackend(guard),
            max_keepalive_connections=4,
            keepalive_expiry=30.0,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        if request.url.scheme not in ("http", "https"):
            raise HostRefused(f"unsupported URL scheme {request.url.scheme}: use http or https")
        url = request.url
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx():
            answer = await self._pool.handle_async_request(asked)
        assert isinstance(answer.stream, AsyncIterable)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


@dataclass(slots=True)
class _Body(httpx2.AsyncByteStream):
    stream: Any = field(repr=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for part in self.stream:
                yield part

    async def aclose(self) -> None:
        await self.stream.aclose()


@contextlib.contextmanager
def _as_httpx() -> Generator[None]:
    """Raise httpcore's connection errors as httpx's: both libraries use the same names."""
    try:
        yield
    except Exception as error:  # httpcore2's errors have no common base; others are re-raised
        named = getattr(httpx2, type(error).__name__, None)
        if type(error).__module__.split(".")[0] != httpcore2.__name__ or named is None:
            raise
        raise named(str(error)) from error


@cache
def _certificates() -> SSLContext:
    """Load the system's certificates; cached, since it takes longer than most requests."""
    return httpx2.create_ssl_context()
