"""Calls on untrusted input are ended at their time and memory limits without affecting later calls."""

from __future__ import annotations

import pytest

from fireswarm.processes.child_pool import in_own_process

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("children_import_tests")]


def forever() -> int:
    while True:
        pass


def fill(megabytes: int) -> int:
    return len(bytes(megabytes * 1_000_000))


async def test_function_that_computes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        await in_own_process(forever, seconds=0.2)


async def test_function_over_the_memory_limit_fails_without_affecting_the_next_call() -> None:
    with pytest.raises(MemoryError):
        await in_own_process(fill, 900, seconds=5, memory_bytes=800_000_000)
    assert await in_own_process(fill, 900, seconds=5) == 900_000_000
