"""Fixtures of all tests of firelite."""

from __future__ import annotations

import asyncio
import sys

import pytest

from loops import TestLoops

if sys.platform != "win32":
    asyncio.set_event_loop_policy(TestLoops())  # pyright: ignore[reportDeprecated]


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the official client does."""
    return "asyncio"
