"""Run functions in child processes that are reused for later calls.

Unlike in anyio's and multiprocessing's pools, a child never imports the parent's ``__main__``. A script that opens a
swarm therefore needs no ``if __name__ == "__main__"`` guard, and a notebook works as well.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Hashable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import anyio
import anyio.to_process
import anyio.to_thread
from anyio.lowlevel import RunVar

from fireswarm.processes.descendants import Descendants
from fireswarm.processes.messages import CLOCK, END, import_folders, read_message, write_message

IDLE_SECONDS = 300.0
"""Idle time after which a child is killed when another child becomes idle."""

MAX_IDLE = 64
"""Maximum number of idle processes; above it, the process with the longest idle time is killed."""

CHILD = "fireswarm.processes.child"

START_SECONDS = 30.0
"""Time allowed for starting the process of `in_own_process` on a busy machine; the work has a separate limit."""


class Hold(NamedTuple):
    """The right to work that has to be renewed: by it, a child process knows when it has to end.

    ``seconds_left`` returns the seconds in which work may start, or raises LeaseLost. ``followers`` are called at each
    renewal with the seconds until the next one is due. After a standstill, a renewal may take ``grace`` seconds.
    """

    seconds_left: Callable[[], Awaitable[float]]
    followers: list[Callable[[float], object]]
    grace: float


@cache
def ends_folder() -> Path:
    """Return the folder of the ends of calls, which child processes read. It ends with this process."""
    folder, own = Path(tempfile.mkdtemp(prefix="fireswarm-ends-")).resolve(), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == own else None)
    return folder


class EndTime:
    """The end of one call. ``path`` is its file; leaving the block removes it."""

    def __init__(self, seconds: float, grace: float) -> None:
        """Set the end in *seconds*. After a standstill, the parent has *grace* seconds to extend it."""
        self._grace = grace
        self._file, self.path = tempfile.mkstemp(dir=ends_folder())
        self.extend(seconds)

    def extend(self, seconds: float) -> None:
        """Set the end to *seconds* from now."""
        os.pwrite(self._file, END.pack(time.clock_gettime(CLOCK) + seconds, self._grace), 0)

    def __enter__(self) -> Self:
        """Return the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        os.close(self._file)
        with contextlib.suppress(OSError):
            Path(self.path).unlink()


@contextlib.contextmanager
def ending(hold: Hold | None, seconds: float) -> Generator[str]:
    """Yield the file with the end of the call, which each renewal of the hold extends; "" without a hold."""
    if hold is None:
        yield ""
        return
    with EndTime(seconds, hold.grace) as end:
        hold.followers.append(end.extend)
        try:
            yield end.path
        finally:
            hold.followers.remove(end.extend)


class PooledProcess[M, A](Protocol):
    """A process that answers calls, one after another."""

    idle_since: float

    @property
    def alive(self) -> bool:
        """True while the process can take another call."""
        ...

    def call(self, message: M) -> A:
        """Send one message and block until its answer. After an exception, the process is killed."""
        ...

    def kill(self) -> None:
        """Kill the process and its child processes."""
        ...


class Child:
    """One child process. A kill includes every descendant, even in a new session."""

    def __init__(self) -> None:
        program = f"import sys; sys.path[:] = {import_folders()!r}; from {CHILD} import main; main()"
        command = [sys.executable, "-u", "-c", program]
        pipe = subprocess.PIPE
        self._descendants = Descendants()
        environment = self._descendants.environment()
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True, env=environment)
        self.idle_since = 0.0

    @property
    def alive(self) -> bool:
        """True until the process has ended."""
        return self._process.poll() is None

    def call(self, message: bytes) -> tuple[bool, Any]:
        """Run one call and block until it ends. Returns True and the result, or False and the exception.

        Raises EOFError if the child dies.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise EOFError("the child has no pipes")
        try:
            write_message(stdin, message)
        except OSError as error:
            raise EOFError(str(error)) from error
        return pickle.loads(read_message(stdout))

    def kill(self) -> None:
        """Kill the process and its descendants, and wait for it."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._descendants.kill_all()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Pool:
    """Idle processes of one event loop by key. They end with the loop, the interpreter, or after ``IDLE_SECONDS``."""

    def __init__(self) -> None:
        self._idle: deque[tuple[Hashable, PooledProcess[Any, Any]]] = deque()
        weakref.finalize(self, _end_all, self._idle)

    def take(self, key: Hashable) -> PooledProcess[Any, Any] | None:
        """Return a running process with *key*, the last used first, or None if there is none."""
        for entry in [entry for entry in reversed(self._idle) if entry[0] == key]:
            self._idle.remove(entry)
            if entry[1].alive:
                return entry[1]
            entry[1].kill()
        return None

    def give_back(self, key: Hashable, process: PooledProcess[Any, Any]) -> None:
        """Return a process to the pool, and kill those that were idle for too long or are too many."""
        process.idle_since = now = time.monotonic()
        self._idle.append((key, process))
        while len(self._idle) > MAX_IDLE or now - self._idle[0][1].idle_since > IDLE_SECONDS:
            self._idle.popleft()[1].kill()


def _end_all(idle: deque[tuple[Hashable, PooledProcess[Any, Any]]]) -> None:
    while idle:
        idle.pop()[1].kill()


_pool: RunVar[Pool] = RunVar("fireswarm.children")


async def run_in_child[T](
    function: Callable[..., T], *arguments: Any, limiter: anyio.CapacityLimiter | None = None
) -> T:
    """Run *function* in a child process. Cancelling the call kills the child and its descendants.

    Function, arguments and result are pickled; the function is imported by its name. Raises the function's exception,
    or BrokenWorkerProcess if the child dies. *limiter* limits the number of concurrent children; the default is the
    number of processors.
    """
    message = pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL)
    try:
        ok, value = await call_pooled(Child, CHILD, message, limiter)
    except EOFError as error:
        raise anyio.BrokenWorkerProcess("the process ended before it answered") from error
    if not ok:
        raise value
    return value


async def call_pooled[M, A](
    start: Callable[[], PooledProcess[M, A]], key: Hashable, message: M, limiter: anyio.CapacityLimiter | None = None
) -> A:
    """Call an idle process with *key*, or a new one, and return it to the pool; with *key* None, kill it.

    A canceled or failed call kills its process.
    """
    pool = _pool.get(None)
    if pool is None:
        _pool.set(pool := Pool())
    async with limiter or anyio.to_process.current_default_process_limiter():
        process: PooledProcess[M, A] = pool.take(key) or await anyio.to_thread.run_sync(start, limiter=_no_limit())
        try:
            answer = await anyio.to_thread.run_sync(process.call, message, abandon_on_cancel=True, limiter=_no_limit())
        except BaseException:
            await _kill(process)
            raise
        if key is not None and process.alive:
            pool.give_back(key, process)
        else:
            await _kill(process)
    return answer


def _no_limit() -> anyio.CapacityLimiter:
    """Return a limiter for threads that only wait; the call's *limiter* limits the children."""
    return anyio.CapacityLimiter(math.inf)


async def _kill(process: PooledProcess[Any, Any]) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(process.kill, limiter=_no_limit())


async def in_own_process[T](
    function: Callable[..., T], *given: Any, seconds: float, memory_bytes: int | None = None
) -> T:
    """Call *function*, importable by name, with *given*. Raises TimeoutError if it exceeds a limit.

    A regular expression or a page can occupy the processor or fill the memory indefinitely; a thread or a timer in the
    same process cannot stop that.
    """
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
