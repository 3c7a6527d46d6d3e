"""Start our commands as copies of a process that has imported everything, in milliseconds instead of a second.

That process is the fork server of ``multiprocessing``. It has no threads and no open connections, so it is safe to
copy. The copies share its memory.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import TracebackType

import anyio
import anyio.to_thread
import psutil

from fireswarm.processes.startup import why_exhausted

NAME_FILE = Path("/proc/self/comm")
"""File with the process name that ``ps -e`` and ``top`` show, at most 15 bytes, on Linux."""

SERVER_DIED = 255
"""Exit code that ``multiprocessing`` reports when the fork server ended before the process, which may still run."""

HELD_BACK = (signal.SIGTERM,)
"""Signals that the fork server ignores: it ends after the process that started it, and after all copies.

Service managers send SIGTERM to every process of a service. A copy receives the signals that were sent before it was
ready.
"""

NO_THREAD_SECONDS = 1.0
"""Pause after the system refused a thread that waits for a copy."""

_one_at_a_time = anyio.CapacityLimiter(1)
"""Lock for all calls of ``multiprocessing``, each of which polls every process of this one."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line: ``entry`` (``module:function``) runs with *arguments*; ``name`` is shown by ``ps``."""

    name: str
    entry: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path


@dataclass(slots=True)
class ForkedProcess:
    """A started command. ``returncode`` is None while it runs, and negative after a signal."""

    pid: int
    _process: ForkServerProcess
    _handle: psutil.Process | None
    returncode: int | None = None
    _waiting: anyio.Lock = field(default_factory=anyio.Lock)

    async def wait(self) -> int:
        """Wait for its end and return the exit code."""
        async with self._waiting:  # only one task at a time can wait for a descriptor
            while self.returncode is None:
                await anyio.wait_readable(self._process.sentinel)
                try:
                    code = await anyio.to_thread.run_sync(self._exit_code, limiter=_one_at_a_time)
                except RuntimeError as error:
                    if not why_exhausted(error):
                        raise
                    await anyio.sleep(NO_THREAD_SECONDS)  # the copy runs, and its end is not lost
                    continue
                if code == SERVER_DIED and self._handle is not None:  # the copy continues to run
                    await anyio.to_thread.run_sync(self._handle.wait, abandon_on_cancel=True)
                self.returncode = code
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            if self._handle is not None:
                self._handle.send_signal(number)

    def _exit_code(self) -> int | None:
        return self._process.exitcode


async def start_forked(command: Command, preload: str) -> ForkedProcess:
    """Start *command* as a copy of a process that has imported the module *preload*.

    The first start waits for the imports. Raises OSError if no process can be started.
    """
    return await anyio.to_thread.run_sync(_start, command, preload, limiter=_one_at_a_time)


def _start(command: Command, preload: str) -> ForkedProcess:
    context = get_context("forkserver")
    context.set_forkserver_preload([preload])
    process = context.Process(target=run_command, args=(command,), name=command.name)
    try:
        process.start()
    except EOFError as error:
        raise ChildProcessError("the process to copy has ended: it could not be loaded or copied") from error
    if process.pid is None:
        raise ChildProcessError("it has no process id")
    try:
        handle = psutil.Process(process.pid)
    except psutil.NoSuchProcess:
        handle = None
    return ForkedProcess(process.pid, process, handle)


def run_command(command: Command) -> None:
    """Run the command in this copy of the fork server, with the command's environment and its log as output."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    _keep_descriptors_to_itself()
    os.environ.clear()
    os.environ.update(command.environment)
    log = os.open(command.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for number in (1, 2):
        os.dup2(log, number)
    os.close(log)
    with contextlib.suppress(OSError):
        NAME_FILE.write_text(command.name[:15], encoding="utf-8")
    sys.argv = [command.name, *command.arguments]
    module, _, function = command.entry.partition(":")
    try:
        getattr(importlib.import_module(module), function)()
    finally:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  (multiprocessing leaves them out)


def _keep_descriptors_to_itself() -> None:
    """Keep the fork server's descriptors from the programs that this process starts."""
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number > 2:
            with contextlib.suppress(OSError):  # the descriptor that lists the folder is already closed
                os.set_inheritable(number, False)


def become_server() -> None:
    """Prepare the fork server to ignore the signals that ask the copies to stop."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    sys.excepthook = _report_in_one_line


def _report_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the refusal of a copy by the system without a traceback: the supervisor starts the server again."""
    if reason := why_exhausted(error):
        sys.stderr.write(f"no process can be copied: {reason}\n")
    else:
        sys.__excepthook__(kind, error, trace)
