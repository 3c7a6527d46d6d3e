"""Fixtures of the tests of fireswarm: a swarm on an embedded store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fireswarm.settings.run_folders import STATE_HOME
from tests.support.confinement import use_rung
from tests.support.postgres import postgres
from tests.support.swarm import SwarmRig, open_emulator_swarm, open_test_swarm


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the official client does."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The agent keeps its runs in a temporary folder, not in that of the person who runs the tests."""
    with mock.patch.dict(os.environ, {STATE_HOME: str(tmp_path_factory.mktemp("state"))}):
        yield


@pytest.fixture(autouse=True)
def pins_of_tools_stay_in_a_temporary_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The tools of MCP servers are pinned in a home of the test, not in that of who runs it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setattr("fireswarm.capabilities.mcp.capability.home_folder", lambda: home)
    return home


@pytest.fixture(params=["bubblewrap", "landlock"])
def rung(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way of confining code that this machine has."""
    use_rung(request.param, monkeypatch)
    return str(request.param)


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """Start a real PostgreSQL server once for all tests; yield its URL."""
    with postgres() as url:
        yield url


@pytest.fixture
async def swarm() -> Any:
    """A swarm on an embedded store in memory, under a virtual clock."""
    async with open_test_swarm() as opened:
        yield opened


@pytest.fixture(params=["firelite", "emulator"])
async def both(request: pytest.FixtureRequest) -> Any:
    """A swarm on each store: on firelite, and on Google's emulator where FIRESTORE_EMULATOR_HOST names one."""
    if request.param == "emulator" and "FIRESTORE_EMULATOR_HOST" not in os.environ:
        pytest.skip("no emulator: `make test-emulator` starts it")
    async with open_test_swarm() if request.param == "firelite" else open_emulator_swarm() as opened:
        yield opened


__all__ = ["SwarmRig"]
