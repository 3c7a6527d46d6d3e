"""Shared fixtures: no network but loopback, nothing left behind, a swarm on an embedded store."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.swarm import SwarmRig, open_test_swarm

_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")
BASE_URLS = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
NOWHERE = "http://127.0.0.1:9"

MEASURED = (
    "fundamentals",
    "conformance",
    "unit/firelite",
    "unit/storage",
    "unit/swarm",
    "chaos/test_poison_documents.py",
    "integration/test_answers_by_hand.py",
    "integration/test_answers_by_mail.py",
    "integration/test_bad_documents.py",
    "integration/test_time.py",
    "integration/test_upkeep.py",
    "integration/test_work_by_mail.py",
    "integration/test_worker.py",
    "integration/test_worker_faults.py",
)
"""Tests whose branch coverage counts: the others do not aim at the core, and tracing makes all tests slower by half."""

REPEATING = (
    "fundamentals/test_big_fans.py",
    "unit/firelite/test_query_model.py",
    "unit/firelite/test_watch_model.py",
)
"""Tests among them that run the same code thousands of times, and those of firelite over gRPC: not measured either."""

for _name in KEYS:  # before any test: a key of the developer's must not let a test spend money
    os.environ.pop(_name, None)
os.environ.update(dict.fromkeys(BASE_URLS, NOWHERE))  # also what a test starts as a process stays on this machine


def _loopback_only(real: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address[0]}: only loopback is allowed")
        return real(self, address)

    return connect


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure branch coverage only in the tests of the core, and in each of them once."""
    tests = Path(__file__).parent
    measured = tuple(tests / name for name in MEASURED)
    repeating = {tests / name for name in REPEATING}
    counted: dict[Path, bool] = {}  # a file has many tests, and comparing paths takes seconds for all of them
    for item in items:
        if item.path not in counted:
            of_the_core = any(item.path.is_relative_to(place) for place in measured)
            counted[item.path] = of_the_core and item.path not in repeating
        if not counted[item.path] or "[grpc" in item.name:
            item.add_marker("no_cover")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to anything but this machine."""
    monkeypatch.setattr(socket.socket, "connect", _loopback_only(_connect))
    monkeypatch.setattr(socket.socket, "connect_ex", _loopback_only(_connect_ex))


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
    async with open_test_swarm() as opened:
        yield opened


__all__ = ["SwarmRig"]
