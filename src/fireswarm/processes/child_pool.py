"""Run functions in child processes that are kept for the next call.

Unlike in anyio's and multiprocessing's pools, a child never imports the parent's ``__main__``. A script that opens a
swarm therefore needs no ``if __name__ == "__main__"`` guard, and a notebook works as well.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_process
import anyio.to_thread
from anyio.lowlevel import RunVar

from fireswarm.processes.descendants import Descendants
from fireswarm.processes.messages import read_message, write_message

IDLE_SECONDS = 300.0
"""A child that was idle for longer is ended when another child becomes idle."""

CHILD = "fireswarm.processes.child"


class Child:
    """One child process. A kill includes every process that it started, also one in a new session."""

    def __init__(self) -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {CHILD} import main; main()"
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
    """Idle children of one event loop. They end with the loop, with the interpreter, or after ``IDLE_SECONDS``."""

    def __init__(self) -> None:
        self._idle: deque[Child] = deque()
        weakref.finalize(self, _end_all, self._idle)

    def take(self) -> Child | None:
        """Return a running child, the last used first, or None if there is none."""
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            child.kill()
        return None

    def give_back(self, child: Child) -> None:
        """Keep a child for the next call, and end children that were idle for too long."""
        child.idle_since = now = time.monotonic()
        self._idle.append(child)
        while now - self._idle[0].idle_since > IDLE_SECONDS:
            self._idle.popleft().kill()


def _end_all(children: deque[Child]) -> None:
    while children:
        children.pop().kill()


_pool: RunVar[Pool] = RunVar("fireswarm.children")


async def run_in_child[T](
    function: Callable[..., T], *arguments: Any, limiter: anyio.CapacityLimiter | None = None
) -> T:
    """Run *function* in a child process. Cancelling the call kills the child and its descendants.

    Function, arguments and result are pickled; the function is imported by its name. Raises the function's exception,
    or BrokenWorkerProcess if the child dies. *limiter* limits the number of concurrent children; the default is the
    number of processors.
    """
    pool = _pool.get(None)
    if pool is None:
        _pool.set(pool := Pool())
    message = pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL)
    async with limiter or anyio.to_process.current_default_process_limiter():
        child = pool.take() or await anyio.to_thread.run_sync(Child, limiter=_no_limit())
        try:
            ok, value = await anyio.to_thread.run_sync(child.call, message, abandon_on_cancel=True, limiter=_no_limit())
        except EOFError as error:
            await _kill(child)
            raise anyio.BrokenWorkerProcess("the process ended before it answered") from error
        except BaseException:
            await _kill(child)
            raise
        pool.give_back(child)
    if not ok:
        raise value
    return value


def _no_limit() -> anyio.CapacityLimiter:
    """Return a limiter for threads that only wait; the call's *limiter* limits the children."""
    return anyio.CapacityLimiter(math.inf)


async def _kill(child: Child) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(child.kill, limiter=_no_limit())
