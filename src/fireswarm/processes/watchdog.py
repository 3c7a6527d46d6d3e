"""Report an event loop that stands still: a worker whose loop is blocked renews no lease and hears no signal."""

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
"""A blocked loop is reported after this time, far below the shortest lease that is in use."""

BEATS = 4
"""The loop shows that it runs this many times within the limit. Each time costs about 0.1 ms."""

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def watch_loop(stall_seconds: float = STALL_SECONDS) -> AsyncGenerator[None]:
    """Watch the running event loop inside the block.

    If it stands still for *stall_seconds*, the stacks of all threads are written to standard error once; when it goes
    on, its log says how long it stood. The stacks have no values of variables. Does nothing without a standard error
    that is a file.
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
    """The last sign of life of a loop, and whether its stall has been reported."""

    stall_seconds: float
    descriptor: int
    over: threading.Event = field(default_factory=threading.Event)
    last: float = field(default_factory=time.monotonic)
    is_reported: bool = False

    async def beat(self) -> None:
        """Show that the loop runs. A stall that was reported is completed with its duration."""
        while True:
            await anyio.sleep(self.stall_seconds / BEATS)
            began, was_reported = self.last, self.is_reported
            self.last, self.is_reported = time.monotonic(), False
            if (stood := self.last - began) >= self.stall_seconds:
                where = ": see the stacks above for the call" if was_reported else ""
                _log.warning("the event loop stood still for %.1f s%s", stood, where)

    def report_stalls(self) -> None:
        """Write the stacks once for each stall, until it is over. Blocks: call it in a thread.

        The thread holds the interpreter's lock meanwhile: `faulthandler.dump_traceback_later` does not, and reading the
        stack of a thread that runs crashes the process. A call into C that holds the lock is reported when it ends.
        """
        while not self.over.wait(max(self.last + self.stall_seconds - time.monotonic(), self.stall_seconds / BEATS)):
            if not self.is_reported and time.monotonic() - self.last >= self.stall_seconds:
                self.is_reported = True
                # The stacks come first: `os.write` gives the lock away, and the loop could leave the call meanwhile.
                faulthandler.dump_traceback(file=self.descriptor, all_threads=True)
                line = f"Timeout ({timedelta(seconds=self.stall_seconds)})! The event loop stands still: stacks above\n"
                with contextlib.suppress(OSError):  # standard error is a pipe that nothing reads any more
                    os.write(self.descriptor, line.encode())
