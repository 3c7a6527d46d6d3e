"""Report a blocked event loop: a worker with a blocked loop renews no lease and receives no signal."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import timedelta

import anyio

STALL_SECONDS = 2.0
"""Time after which a blocked loop is reported, far below the shortest lease in use."""

BEATS = 4
"""Number of times within the limit that the loop signals that it runs. Each signal costs about 0.1 ms."""

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def watch_loop(stall_seconds: float = STALL_SECONDS) -> AsyncGenerator[None]:
    """Watch the running event loop inside the block.

    If it is blocked for *stall_seconds*, the stacks of all threads are written to standard error once; when it
    continues, the duration is logged. The stacks have no values of variables. Does nothing if standard error is not a
    file.
    """
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        yield
        return
    watch = _Watch(stall_seconds, descriptor)
    thread = threading.Thread(target=watch.report_stalls, name="watchdog", daemon=True)
    thread.start()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(watch.beat)
            try:
                yield
            finally:
                group.cancel_scope.cancel()
    finally:
        watch.over.set()
        thread.join()


@dataclass(slots=True)
class _Watch:
    """The last signal of a loop, and whether its stall has been reported."""

    stall_seconds: float
    descriptor: int
    over: threading.Event = field(default_factory=threading.Event)
    last: float = field(default_factory=time.monotonic)
    is_reported: bool = False

    async def beat(self) -> None:
        """Record that the loop runs. The report of a stall is completed with its duration."""
        while True:
            await anyio.sleep(self.stall_seconds / BEATS)
            began, was_reported = self.last, self.is_reported
            self.last, self.is_reported = time.monotonic(), False
            if (stood := self.last - began) >= self.stall_seconds:
                where = ": see the stacks above for the call" if was_reported else ""
                _log.warning("the event loop was blocked for %.1f s%s", stood, where)

    def report_stalls(self) -> None:
        """Write the stacks once for each stall, until stopped. Blocks: call it in a thread.

        The thread holds the interpreter's lock during the report: `faulthandler.dump_traceback_later` does not, and
        reading the stack of a running thread crashes the process. A call into C that holds the lock is reported when it
        ends.
        """
        while not self.over.wait(max(self.last + self.stall_seconds - time.monotonic(), self.stall_seconds / BEATS)):
            if not self.is_reported and time.monotonic() - self.last >= self.stall_seconds:
                self.is_reported = True
                # The stacks come first: `os.write` releases the lock, and the loop could leave the blocking call.
                faulthandler.dump_traceback(file=self.descriptor, all_threads=True)
                line = f"Timeout ({timedelta(seconds=self.stall_seconds)})! The event loop is blocked: stacks above\n"
                with contextlib.suppress(OSError):  # standard error is a pipe without a reader
                    os.write(self.descriptor, line.encode())
