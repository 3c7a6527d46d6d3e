"""Event loops for tests in one process, each with its own, that share gRPC's queue of events."""

from __future__ import annotations

import asyncio
from typing import Any


class TestLoop(asyncio.SelectorEventLoop):
    """A loop that does not report what gRPC has for a loop that was closed before.

    gRPC takes the events of all loops in whichever one runs. An event for the loop of an earlier test would fail the
    test that happens to run.
    """

    __test__ = False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error, handle = context.get("exception"), repr(context.get("handle"))
        late = isinstance(error, RuntimeError) and str(error) == "Event loop is closed"
        if not (late and not self.is_closed() and "PollerCompletionQueue" in handle):
            super().call_exception_handler(context)


class TestLoops(asyncio.DefaultEventLoopPolicy):
    """Make these loops."""

    __test__ = False

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return TestLoop()
