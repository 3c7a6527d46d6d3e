"""Fixtures of the tests of fireswarm: a swarm on an embedded store."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.swarm import SwarmRig, open_test_swarm


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
