"""Report an event loop that stands still: a worker whose loop is blocked renews no lease and hears no signal."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import sys
import time
from collections.abc import AsyncGenerator

import anyio

STALL_SECONDS = 2.0
"""A blocked loop is reported after this time, far below the shortest lease that is in use."""

BEATS = 4
"""The loop shows that it runs this many times within the limit. Each time costs about 0.1 ms."""

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def watch_loop(stall_seconds: float = STALL_SECONDS) -> AsyncGenerator[None]:
    """Watch the running event loop inside the block.

    If it stands still for *stall_seconds*, the stacks of all threads are written to standard error once; when it goes
    on, its log says how long it stood. The stacks are written by a thread that does not need the interpreter's lock, so
    this also works while a call into C holds it. They have no values of variables. Does nothing without a standard
    error that is a file. A process can have only one watched loop.
    """
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        yield
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_beat, stall_seconds, descriptor)
        try:
            yield
        finally:
            group.cancel_scope.cancel()


async def _beat(stall_seconds: float, descriptor: int) -> None:
    """Postpone the report again and again. One that was written is completed with the duration."""
    try:
        while True:
            began = time.monotonic()
            faulthandler.dump_traceback_later(stall_seconds, file=descriptor)
            await anyio.sleep(stall_seconds / BEATS)
            if (stood := time.monotonic() - began) >= stall_seconds:
                _log.warning("the event loop stood still for %.1f s: see the stacks above for the call", stood)
    finally:
        faulthandler.cancel_dump_traceback_later()
