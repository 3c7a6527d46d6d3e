"""What holds for every test, of fireswarm and of firelite: no network but loopback, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from loops import TestLoops
from tests.support.measuring import Measuring, import_core

pytest_plugins = ["tests.support.part"]
MEASURING = pytest.StashKey[Measuring]()

_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex

KEYS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK"),
)
ON_NO_CLOUD = ("NO_GCE_CHECK", "AWS_EC2_METADATA_DISABLED")
SET_BY_LIBRARIES = ("PYTEST_CURRENT_TEST", "GRPC_ENABLE_FORK_SUPPORT", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
BASE_URLS = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OPENAI_BASE_URL")
NOWHERE = "http://127.0.0.1:9"

import_core()
if sys.platform != "win32":
    asyncio.set_event_loop_policy(TestLoops())  # pyright: ignore[reportDeprecated]

hypothesis.settings.register_profile("fireswarm", deadline=None)  # an example may take longer on a busy machine
hypothesis.settings.load_profile("fireswarm")

for _name in KEYS:  # before any test: a key of the developer's must not let a test spend money
    os.environ.pop(_name, None)
for _name in [name for name in os.environ if name.startswith("OTEL_")]:  # tests send nothing to a developer's collector
    os.environ.pop(_name)
os.environ.update(dict.fromkeys(ON_NO_CLOUD, "true"))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background: what the tests start would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.update(dict.fromkeys(BASE_URLS, NOWHERE))  # also what a test starts as a process stays on this machine


def _loopback_only(real: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address[0]}: only loopback is allowed")
        return real(self, address)

    return connect


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Take over what pytest-cov has started."""
    session.config.stash[MEASURING] = Measuring(Path(__file__).parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure branch coverage only in the tests of the core, and in each of them once."""
    with item.config.stash[MEASURING].of(item.path, item.name):
        return (yield)


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    """Fail a test that leaves the environment changed: the next test of this process would run in it."""

    def variables() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name not in SET_BY_LIBRARIES}

    before = variables()
    yield
    changed = {name for name, _ in before.items() ^ variables().items()}
    assert not changed, f"left changed: {sorted(changed)}"


@pytest.fixture(autouse=True)
def no_network(same_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to anything but this machine. Before anything is patched, the environment is noted."""
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
