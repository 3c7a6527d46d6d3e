"""Start and end of a command: imports without garbage collection, SIGINT at any moment, what the system may refuse."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from importlib.util import find_spec
from types import FrameType
from typing import Any, NoReturn

OWN_MODULE = (sys.executable, "-P", "-m")
"""Words that run a module of ours: not one of the same name in the current folder, which may be a stranger's."""

INTERRUPTED = 130
"""Exit code after SIGINT or SIGTERM, as in shells."""

_has_frozen = False
"""True in a process of our commands. Asking the collector would count all frozen objects."""


@contextlib.contextmanager
def without_collector() -> Generator[None]:
    """Import inside this block without garbage collection.

    New classes are never garbage, and scanning them costs up to 20 % of import time. In a process of our commands,
    which has frozen its loaded objects, the new objects are frozen as well: otherwise later collections, and the last
    one at exit, would scan them again. In other processes nothing is frozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _has_frozen:
            gc.freeze()
        if enabled:
            gc.enable()


NO_THREAD = "can't start new thread"
"""Python's words when the system refuses a thread."""

EXHAUSTED = {
    errno.EAGAIN: "the limit of processes and threads is reached: end some, or raise it (`ulimit -u`, or the pids "
    "limit of the container or service)",
    errno.ENOMEM: "there is no memory left: end some programs, or raise the memory limit of the container or service",
    errno.EMFILE: "the limit of open files is reached: raise it (`ulimit -n`)",
    errno.ENFILE: "this machine has no open file left: end some programs",
}
"""What to do when the system refuses a process, a thread or a descriptor, by the number of the error."""

PROBED_THREADS = 2_000
"""Most threads that are started to find out whether so many are allowed."""


def stop_on_interrupt() -> None:
    """From now on, SIGINT ends this process without a traceback, with exit code INTERRUPTED.

    During an import the process ends at once: an exception would be raised at any place of foreign code, some of which
    ignores it. Elsewhere it is KeyboardInterrupt. A caller's choice to ignore the signal is respected.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) in (
        signal.default_int_handler,
        _end_now,
    ):
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _end_if_interrupted


def end_on_interrupt() -> None:
    """From now on, SIGINT ends this process at once: nothing is left to do but to end."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) in (
        signal.default_int_handler,
        _interrupt,
    ):
        signal.signal(signal.SIGINT, _end_now)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end_now()
        frame = frame.f_back
    raise KeyboardInterrupt


def _end_now(*_: object) -> NoReturn:
    with contextlib.suppress(Exception):  # the signal may have come during a write
        sys.stdout.flush()
    os._exit(INTERRUPTED)


def _end_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """End the process if an interrupt came where exceptions are lost, such as in ``__del__``."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end_now()
    sys.__unraisablehook__(unraisable)


def why_exhausted(error: BaseException) -> str:
    """Return what to do if the system refused a process, a thread or a descriptor, or ""."""
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return EXHAUSTED[errno.EAGAIN]
    if isinstance(error, MemoryError):
        return EXHAUSTED[errno.ENOMEM]
    return EXHAUSTED.get(error.errno or 0, "") if isinstance(error, OSError) else ""


def require_threads(number: int) -> None:
    """Raise BlockingIOError unless the system allows *number* more threads, which it counts as processes.

    gRPC ends the process if it cannot start its threads, so they are tried first. A thousand take 50 ms.
    """
    over = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(min(number, PROBED_THREADS)):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise BlockingIOError(errno.EAGAIN, f"{number:,} more processes and threads are needed") from error
    finally:
        over.set()
        for thread in started:
            thread.join()


def run_loop[T](call: Callable[..., Awaitable[T]], *args: Any, options: dict[str, Any] | None = None) -> T:
    """Run an async function. SIGINT cancels it, for which asyncio needs to find Python's own handler."""
    import anyio

    ours = signal.getsignal(signal.SIGINT) is _interrupt
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return anyio.run(call, *args, backend_options=options)
    finally:
        if ours:
            signal.signal(signal.SIGINT, _interrupt)


def freeze() -> None:
    """Exclude all current objects from garbage collection.

    Called when a command is loaded and when it ends: with a provider's SDK, the interpreter's last collection at exit
    would take a quarter of a second, for memory that is freed anyway.
    """
    global _has_frozen
    _has_frozen = True
    gc.freeze()


def loop_options() -> dict[str, Any]:
    """Return options for ``anyio.run``: uvloop if installed, which saves a tenth of a worker's time.

    uvloop starts processes by fork and exec. gRPC's fork support would interrupt it for each fork, without
    need: the child processes never use gRPC.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    return {"use_uvloop": sys.platform != "win32" and find_spec("uvloop") is not None}
