"""Run untrusted work in a child process that is ended when it exceeds a time or memory limit.

A regular expression or a page can occupy the processor or fill the memory indefinitely; a thread or a timer in the
same process cannot stop that.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Generator
from typing import Any

import anyio

from fireswarm.processes.child_pool import run_in_child

START_SECONDS = 30.0
"""Time allowed for starting the process on a busy machine; the work has a separate limit."""


async def in_own_process[T](
    function: Callable[..., T], *given: Any, seconds: float, memory_bytes: int | None = None
) -> T:
    """Call *function*, importable by name, with *given*. Raises TimeoutError if it exceeds a limit."""
    try:
        with anyio.fail_after(seconds + START_SECONDS):
            return await run_in_child(_call_within_limits, function, given, seconds, memory_bytes)
    except anyio.BrokenWorkerProcess as error:
        raise TimeoutError("the process exceeded its time limit or was killed") from error


def _call_within_limits[T](
    function: Callable[..., T], given: tuple[Any, ...], seconds: float, memory_bytes: int | None
) -> T:
    with _limits(seconds, memory_bytes):
        return function(*given)


@contextlib.contextmanager
def _limits(seconds: float, memory_bytes: int | None) -> Generator[None]:
    """Set limits enforced by the system, even if the caller stops waiting. *seconds* are CPU time."""
    if sys.platform == "win32":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
