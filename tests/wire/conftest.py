"""The server of all providers, and their adapters, for a module."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.minds import Lab


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Share one loop in the whole module: the SDKs' clients are slow to create and bound to one loop."""
    return "asyncio"


@pytest.fixture(scope="module")
async def lab() -> AsyncGenerator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        async with Lab.open(patch) as opened:
            # The loop's own thread lives as long as the loop; the SDKs use it to renew tokens and to sign.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            await asyncio.to_thread(lambda: None)
            yield opened
