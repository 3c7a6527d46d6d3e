"""The loops of tests report every fault but gRPC's late events for a loop that is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loops import TestLoop

pytestmark = pytest.mark.anyio


async def test_tests_run_in_such_a_loop() -> None:
    assert isinstance(asyncio.get_running_loop(), TestLoop)


def test_only_late_events_of_grpc_are_not_reported() -> None:
    loop, reported = TestLoop(), list[Any]()
    loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))

    def poller() -> None:
        raise RuntimeError("Event loop is closed")

    def other() -> None:
        raise RuntimeError("Event loop is closed")

    poller.__qualname__ = "PollerCompletionQueue._handle_events"
    try:
        loop.call_soon(poller)
        loop.call_soon(other)
        loop.call_soon(loop.stop)
        loop.run_forever()
    finally:
        loop.close()
    assert len(reported) == 1
