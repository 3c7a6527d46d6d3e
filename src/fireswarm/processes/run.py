"""Run a child process within a view and limits. Its output is bounded, and all its child processes end with it.

Threads read its output and wait for it, so that no task of an event loop must outlive the call that started it.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import which
from typing import IO, Protocol

import anyio
import anyio.to_thread
import psutil

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import Launch
from fireswarm.processes.confinement.control_group import new_control_group
from fireswarm.processes.confinement.process_limits import Baseline, Excess, ProcessLimits
from fireswarm.processes.confinement.view import View
from fireswarm.processes.descendants import Descendants, running, tree
from fireswarm.processes.messages import elsewhere
from fireswarm.processes.output import KILLED, TIMED_OUT, OutputTail

LIMITS = ProcessLimits()
"""Default limits of a program."""

MAX_OUTPUT_BYTES = 4_000_000
"""Maximum output of `run_confined`; the middle of a longer output is omitted."""

READ_BYTES = 65_536
PAUSE_SECONDS = 0.0005
"""Pause after a full read, so that endless output does not block this process."""

LAST_OUTPUT_SECONDS = 0.5
"""Maximum time to wait for output after the end, if an unknown process holds the pipe open."""

LAUNCHER_SECONDS = 2.0
"""Maximum time for a launcher to kill all descendants of the command."""

LAST_READS = 64
"""Maximum number of reads after the end, if such a process keeps writing; a pipe holds less."""

NOT_STARTED = ("bwrap: ", "landlock: ", "sandbox-exec: ", "prlimit: failed to ", "setpriv: failed to ")
"""Prefixes of the only line of output of a launcher that could not start the command."""

Check = Callable[[], Excess | None]


class CannotStart(OSError):
    """The program could not be started; the message has the reason."""


class Sink(Protocol):
    """Receives the output of a program; a separate thread calls it."""

    def add(self, data: bytes) -> None:
        """Add bytes."""
        ...


class Confines(Protocol):
    """A description of what a process can see."""

    def confine(self, environment: Mapping[str, str]) -> AbstractContextManager[Launch]:
        """Yield the start of a command with this view, which lasts until the end of the block.

        Raises SandboxRefused.
        """
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """A program to start once: its words, folder, environment (default: this process's) and standard input.

    ``own`` finds the program and all its child processes.
    """

    words: Sequence[str]
    folder: Path
    environment: Mapping[str, str] | None = None
    stdin: int = subprocess.DEVNULL
    own: Descendants = field(default_factory=Descendants)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program: its exit code, and the limit that it exceeded, if any."""

    code: int
    excess: Excess | None = None

    @property
    def timed_out(self) -> bool:
        """True if the time limit was exceeded."""
        return self.excess is not None and self.excess.limit == "time"

    @property
    def reason(self) -> str:
        """The reason why it was killed, or ""."""
        return self.excess.reason if self.excess else ""


@dataclass(slots=True)
class Confined:
    """A started program in a new process group. Call `wait` or `kill`, which kill all its child processes."""

    process: subprocess.Popen[bytes]
    launch: Launch
    limits: ProcessLimits
    _program: Program
    _held: ExitStack
    """Its control group, and the descriptors of its view."""

    _over: threading.Event = field(default_factory=threading.Event)
    """Set at its end, or to stop it."""

    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _ending: threading.Event = field(default_factory=threading.Event)
    """Set after all processes were killed: the content of the pipes is then the last output."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: bool = False
    _killed: bool = False
    _never_began: bool = False
    lost: Excess | None = None
    """Set when it was ended because something in its view lost its protection."""

    @classmethod
    def start(cls, program: Program, view: Confines | None, limits: ProcessLimits, *sinks: Sink) -> Confined:
        """Start *program*, confined to *view* if given. A single sink gets all output, two sinks get stdout and stderr.

        Without a sink, input and outputs are pipes for the caller. Call it in a long-lived thread, such as that of the
        event loop: bubblewrap kills its command when the thread that started it ends. Raises SandboxRefused if the view
        cannot be enforced, and CannotStart.
        """
        environment = program.own.environment(program.environment)
        with ExitStack() as held:
            group = held.enter_context(closing(new_control_group(program.own.mark, limits)))
            launch = Launch([], environment) if view is None else held.enter_context(view.confine(environment))
            limiting = limits.prefix if view is not None else ()
            words = [*launch.prefix, *limiting, *map(launch.word, program.words)]
            try:
                _check_program(words[0], program.folder, launch.environment)
                process = subprocess.Popen(
                    [*group.prefix, *words],
                    stdin=program.stdin if sinks else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if len(sinks) == 1 else subprocess.PIPE,
                    cwd=program.folder,
                    env=launch.environment,
                    pass_fds=launch.pass_fds,
                    start_new_session=sys.platform != "win32",
                )
            except (OSError, ValueError) as error:  # ValueError: a command with a zero byte
                why = getattr(error, "strerror", None) or str(error)
                raise CannotStart(f"cannot start {program.words[0]} in {program.folder}: {why}") from error
            started = cls(process, launch, limits, program, held.pop_all())
        started._follow_streams(sinks)
        if launch.covered is not None:
            launch.covered.begin(started._end_unprotected)
        return started

    def wait(self, seconds: float, has_to_end: Check | None = None, grace: float = 0.0) -> Ended:
        """Wait for its end; kill it at a limit, after *seconds*, or when *has_to_end* gives a reason.

        Blocks. All output has arrived when it returns.
        """
        excess = None
        try:
            excess = self.watch(self._over, seconds, has_to_end)
        finally:
            self.kill(grace)
        if excess is None and self._stopping:
            excess = Excess("caller", "it was stopped")
        code = self.process.returncode
        return Ended(code if excess is None else TIMED_OUT if excess.limit == "time" else KILLED, excess)

    async def finish(self, seconds: float, has_to_end: Check | None = None, grace: float = 0.0) -> Ended:
        """Do the same as `wait` without blocking the event loop. A cancellation kills the program."""
        waiting = partial(self.wait, seconds, has_to_end, grace)
        try:
            return await anyio.to_thread.run_sync(waiting, abandon_on_cancel=True, limiter=_no_limit())
        finally:
            if not self._killed:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self.kill, grace, limiter=_no_limit())

    def watch(
        self, until: threading.Event, seconds: float = math.inf, has_to_end: Check | None = None
    ) -> Excess | None:
        """Check the limits until *until* is set, and return the first limit that is exceeded. Blocks."""
        before, end = Baseline.now(self._program.folder), time.monotonic() + seconds
        for pause in self.limits.intervals():
            left = end - time.monotonic()
            if left <= 0:
                return Excess("time", f"it took longer than {seconds:,g} s")
            if until.wait(min(pause, left)) or self.lost:
                return self.lost
            excess = has_to_end() if has_to_end is not None else None
            if excess := excess or self.limits.exceeded_by(self.process.pid, before):
                return excess
        return None

    def _end_unprotected(self, place: Path) -> None:
        """End the program at once: another one has replaced *place*, which is now neither protected nor hidden."""
        self.lost = Excess("protection", f"another program replaced {place}, so its protection ended: start it again")
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()  # bubblewrap's processes end with it
        self._over.set()

    def stop(self) -> None:
        """Make `wait` kill the program now."""
        self._stopping = not self._over.is_set()
        self._over.set()

    def kill(self, grace: float = 0.0) -> None:
        """Kill the program and its child processes: with SIGTERM, and with SIGKILL after *grace* seconds. Blocks."""
        with self._lock:
            if self._killed:
                return
            self._ask_launcher_to_end(grace)
            descendants = tree(self.process.pid)
            if grace and self._is_running():
                _signal_group(self.process.pid, signal.SIGTERM)
                self._threads[0].join(grace)
            _signal_group(self.process.pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
            if self._is_running():
                self.process.kill()
            self._program.own.kill_all(descendants)  # a process in another session may hold the output open
            self._ending.set()
            for thread in self._threads:
                thread.join()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # input that it did not read
                        pipe.close()
            self._never_began = self.launch.has_failed()
            self._held.close()
            running.discard(self._program.own)
            self._killed = True

    def _ask_launcher_to_end(self, grace: float) -> None:
        """Let a launcher that follows all descendants kill them: none of them escapes by leaving its parent."""
        if not self.launch.end_signal or not self._is_running():
            return
        if grace:
            _signal_group(self.process.pid, signal.SIGTERM)
            self._threads[0].join(grace)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, self.launch.end_signal)
        self._threads[0].join(LAUNCHER_SECONDS)

    def start_failure(self, ended: Ended, told: str) -> str:
        """Return why the program itself was not started, judged by the end and the output of its launchers, or ""."""
        if ended.excess is not None or ended.code <= 0 or not self.launch.prefix:
            return ""
        if self._never_began or (told.startswith(NOT_STARTED[2:]) and told.count("\n") == 1):
            first = next((start for start in NOT_STARTED if told.startswith(start)), "")
            return told.removeprefix(first).strip() or f"exit code {ended.code}"
        return ""

    def _is_running(self) -> bool:
        return self._threads[0].is_alive()

    def _follow_streams(self, sinks: Sequence[Sink]) -> None:
        """Start a thread that waits for the end, and one for each stream that has a sink."""
        if sinks:
            running.add(self._program.own)
        streams = (self.process.stdout, self.process.stderr)
        work: list[Callable[[], object]] = [self._await_end]
        work += [partial(self._drain, stream, sink) for stream, sink in zip(streams, sinks, strict=False) if stream]
        self._threads += [threading.Thread(target=each, name="child-process", daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def _await_end(self) -> None:
        self.process.wait()
        self._over.set()

    def _drain(self, stream: IO[bytes], sink: Sink) -> None:
        """Read a stream to its end, beyond the stored part, or until all processes are dead and no output is left."""
        reads = LAST_READS
        while reads:
            ending = self._ending.is_set()
            reads -= ending
            if not _has_more(stream.fileno()):
                if ending:
                    return
            elif data := os.read(stream.fileno(), READ_BYTES):
                sink.add(data)
                if len(data) == READ_BYTES:
                    time.sleep(PAUSE_SECONDS)
            else:
                return


def _check_program(word: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Raise CannotStart for a missing program, which after a group's prefix would look like a command that ended."""
    place = word if Path(word).name == word else str(folder / word)
    if which(place, path=environment.get("PATH", os.defpath)) is None:
        raise CannotStart(f"{word} does not exist")


def _has_more(number: int) -> bool:
    """Wait a moment for output or its end."""
    if sys.platform == "win32":  # Windows cannot wait for a pipe
        return True
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(LAST_OUTPUT_SECONDS * 1_000))


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError, psutil.Error):
        if sys.platform == "win32":
            psutil.Process(pid).send_signal(number)
        else:
            os.killpg(pid, number)


def _no_limit() -> anyio.CapacityLimiter:
    """Return a limiter for threads that only wait."""
    return anyio.CapacityLimiter(math.inf)


def run_confined(
    command: Sequence[str],
    view: View,
    environment: Mapping[str, str],
    seconds: float,
    *,
    confinement: str = "auto",
    has_ended: Callable[[], bool] = lambda: False,
) -> tuple[int, str]:
    """Run *command* in the view's workspace and return its exit code and its output, stdout and stderr together.

    A writable view passes all of *environment* on.

    It is killed with its child processes after *seconds*, when it exceeds `ProcessLimits`, or soon after *has_ended*
    returns True. *confinement* ``none`` permits the whole machine, ``container`` everything in the container. Blocks.
    Raises SandboxRefused if the view cannot be enforced, and CannotStart.
    """
    if elsewhere:
        return elsewhere[0](command, view, environment, seconds)
    passes = (*view.passes, *environment)
    seen = None if confinement == "none" else replace(view, confinement=confinement, passes=passes)
    output = OutputTail(MAX_OUTPUT_BYTES)
    started = Confined.start(Program(command, view.workspace, environment), seen, LIMITS, output)
    ended = started.wait(seconds, lambda: Excess("caller", "its caller has ended") if has_ended() else None)
    told = output.text()
    if reason := started.start_failure(ended, told):
        raise SandboxRefused(f"{command[0]} could not be started confined: {reason}")
    if ended.timed_out:
        return ended.code, f"{told}\nkilled after {seconds:g} s"
    return ended.code, f"{told}\nended: {ended.reason}" if ended.reason else told
