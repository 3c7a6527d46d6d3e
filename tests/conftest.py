"""Shared fixtures: no network but loopback, nothing left behind, a swarm on an embedded store."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.swarm import Swarm, open_swarm

_real_connect = socket.socket.connect


def _loopback_only(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"a test tried to reach {address[0]}: only loopback is allowed")
    _real_connect(self, address)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to anything but this machine."""
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)


@pytest.fixture(autouse=True)
def no_leftover_threads() -> Iterator[None]:
    """Fail a test that leaves a thread behind which would keep the process alive."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    workers = [thread for thread in left if not thread.name.startswith("AnyIO worker")]
    assert not workers, f"threads left behind: {workers}"


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the official client does."""
    return "asyncio"


@pytest.fixture
async def swarm() -> Any:
    """A swarm on an embedded store in memory, under a virtual clock."""
    async with open_swarm() as opened:
        yield opened


__all__ = ["Swarm"]
