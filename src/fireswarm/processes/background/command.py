"""A command in the background, confined and limited as one in the foreground. All that it started ends with it.

Threads read its output and watch its limits, so that no task of the event loop has to outlive the call that started it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

import anyio.to_thread
import psutil

from fireswarm.processes.background.recent_output import RecentOutput
from fireswarm.processes.confinement.control_group import ControlGroup, new_control_group
from fireswarm.processes.confinement.limits import Disk, ProcessLimits, intervals
from fireswarm.processes.confinement.view import Launch, View, check_confinement, confine
from fireswarm.processes.descendants import Descendants, running, tree
from fireswarm.processes.output import READ_BYTES
from fireswarm.processes.shell import Shell

PAUSE_SECONDS = 0.002
"""Pause after a full read, so that endless output does not keep this process from its work."""

KILL_AFTER_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL when a command is stopped."""

LAST_OUTPUT_MILLISECONDS = 500
"""Wait for output after the end, if a process that could not be found holds the pipe open."""

GUARD = "fireswarm.processes.background.guard"


class CannotStart(Exception):
    """The command could not be started; the message says why."""


@dataclass(slots=True)
class BackgroundCommand:
    """A command in progress, or one that has ended: then ``ended`` is set and ``end`` says how."""

    output: RecentOutput
    end: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] = field(init=False)
    _began: float = field(default_factory=time.monotonic)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _killed: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @classmethod
    async def start(
        cls, shell: Shell, command: str, cwd: Path, seconds: float, view: View | None = None
    ) -> BackgroundCommand:
        """Start *command* in *cwd*, confined to *view* if given. It is ended after *seconds* at the latest.

        Call it in the thread of the event loop: bubblewrap ends its command with the thread that started it.
        Raises SandboxRefused if it cannot be confined, and CannotStart.
        """
        if view is not None:
            await anyio.to_thread.run_sync(check_confinement, view)
        started = cls(RecentOutput(shell.max_output_bytes))
        started._launch(shell, command, cwd, seconds, view)
        return started

    def _launch(self, shell: Shell, command: str, cwd: Path, seconds: float, view: View | None) -> None:
        """Start the process, and the threads that follow it. Raises SandboxRefused and CannotStart."""
        own = Descendants()
        environment = own.environment(shell.environment)
        disk = Disk.of(cwd)
        group = new_control_group(own.mark, shell.limits)
        guard: subprocess.Popen[bytes] | None = None
        try:
            if view is None or view.container:  # bubblewrap ends its command with this process by itself
                guard = _start_guard(own.mark)
            with nullcontext(Launch([], environment)) if view is None else confine(view, environment) as launch:
                words = shell.words(launch, command, view)
                if which(words[0]) is None:  # behind the group's prefix, it would look like a command that ended
                    raise FileNotFoundError(errno.ENOENT, f"{words[0]} does not exist")
                self._process = subprocess.Popen(
                    [*group.prefix, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=launch.environment,
                    start_new_session=sys.platform != "win32",
                    pass_fds=launch.pass_fds,
                )
        except BaseException as error:
            group.close()
            _dismiss(guard)
            if isinstance(error, (OSError, ValueError)):  # ValueError: a command with a zero byte
                why = getattr(error, "strerror", None) or str(error)
                raise CannotStart(f"cannot start {shell.argv[0]} in {cwd}: {why}") from error
            raise
        running.add(own)
        watched = (own, shell.limits, disk, seconds, group, guard)
        self._threads = [
            threading.Thread(target=self._read, name="background-output", daemon=True),
            threading.Thread(target=self._watch, args=watched, name="background-limits", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def stop(self) -> None:
        """End the command with all that it started, and wait for that. Blocks."""
        self._stopping.set()
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
        self.wait()

    def wait(self) -> None:
        """Wait for the end. Blocks."""
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        """Read the output until no process holds it open, or the command was ended and there is no more."""
        stream = self._process.stdout
        if stream is None:
            return
        while self._has_more(stream.fileno()) and (data := os.read(stream.fileno(), READ_BYTES)):
            self.output.add(data)
            if len(data) == READ_BYTES:
                time.sleep(PAUSE_SECONDS)

    def _has_more(self, number: int) -> bool:
        """Wait for output or its end; returns False if there is none although the command was ended."""
        if sys.platform == "win32":  # it cannot wait for a pipe
            return True
        poll = select.poll()
        poll.register(number, select.POLLIN)
        while not poll.poll(LAST_OUTPUT_MILLISECONDS):
            if self._killed.is_set():
                return False
        return True

    def _watch(
        self,
        own: Descendants,
        limits: ProcessLimits,
        disk: Disk,
        seconds: float,
        group: ControlGroup,
        guard: subprocess.Popen[bytes] | None,
    ) -> None:
        """Wait for the end of the command, or end it at a limit; then end all that it left."""
        end = ""
        try:
            end = self._wait_within(limits, disk, seconds)
        finally:
            self._kill_all(own)
            self._killed.set()
            self._threads[0].join()
            if self._process.stdout is not None:
                self._process.stdout.close()
            group.close()
            _dismiss(guard)
            running.discard(own)
            self.end = end or _describe_exit(self._process.returncode)
            self.ended.set()
            self.output.wake()

    def _wait_within(self, limits: ProcessLimits, disk: Disk, seconds: float) -> str:
        """Wait for the end; returns why the command has to end before it, or ""."""
        for pause in intervals():
            left = seconds - self.seconds
            if left <= 0:
                return f"was ended after {seconds:,g} s, its time limit"
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(min(pause, left))
                return "was stopped" if self._stopping.is_set() else ""
            if self._stopping.is_set():
                return "was stopped"
            if reason := limits.exceeded_by(self._process.pid, disk):
                return f"was ended: {reason}"
        return ""

    def _kill_all(self, own: Descendants) -> None:
        """End the command and its descendants: with SIGTERM first if it was stopped."""
        descendants = tree(self._process.pid)
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_AFTER_SECONDS)
        if sys.platform != "win32":
            self._signal(signal.SIGKILL)
        for child in descendants:
            with contextlib.suppress(psutil.Error):
                child.kill()
        own.kill_all()  # a process in another session may hold the output open
        self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.Error):
            if sys.platform == "win32":
                psutil.Process(self._process.pid).send_signal(number)
            else:
                os.killpg(self._process.pid, number)


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _start_guard(mark: str) -> subprocess.Popen[bytes]:
    """Start a process that kills everything with *mark* when this process is gone."""
    return subprocess.Popen(
        [sys.executable, "-m", GUARD, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=sys.platform != "win32",
    )


def _dismiss(guard: subprocess.Popen[bytes] | None) -> None:
    """End the guard: there is nothing left to kill."""
    if guard is not None:
        guard.kill()
        guard.wait()
        if guard.stdin is not None:
            guard.stdin.close()
