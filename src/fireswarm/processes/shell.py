"""Run one shell command with limits on time and output. Its whole process tree is killed at the end."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which

import anyio
import anyio.abc
import anyio.to_thread
import psutil

from fireswarm.processes.confinement.control_group import ControlGroup, new_control_group
from fireswarm.processes.confinement.limits import Disk, ProcessLimits, intervals
from fireswarm.processes.confinement.view import Launch, View, check_confinement, confine
from fireswarm.processes.descendants import Descendants, running, tree
from fireswarm.processes.output import CANNOT_START, KILLED, TIMED_OUT, OutputTail, drain

KILL_AFTER_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL, so that a command can remove partial files."""


FOLDER_MARK = "\x1efolder:"
TELL_FOLDER = f"""trap 'printf "\\n{FOLDER_MARK}%s" "$PWD" >&2' EXIT\n"""
"""Line before a command that tells the current folder at its end."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a command. ``stdout`` and ``stderr`` are limited in size: the middle is left out, with a note."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    ended: str = ""
    """The limit on its processes that ended it."""

    folder: str = ""
    """The current folder at its end, if it was asked for."""


@dataclass(frozen=True, slots=True)
class Shell:
    """``argv`` runs a command line: ``/bin/bash -lc`` or ``pwsh -NoProfile -Command``."""

    argv: Sequence[str]
    max_output_bytes: int = 16_000
    environment: Mapping[str, str] | None = None
    limits: ProcessLimits = ProcessLimits()

    @classmethod
    def of(
        cls,
        linux: str,
        windows: str,
        max_output_bytes: int,
        environment: Mapping[str, str],
        limits: ProcessLimits,
    ) -> Shell:
        """Return the shell of this machine."""
        windowed = sys.platform == "win32"
        argv = (windows, "-NoProfile", "-Command") if windowed else (linux, "-lc")
        return cls(argv, max_output_bytes, environment, limits)

    async def run(
        self, command: str, cwd: Path, timeout_seconds: float, view: View | None = None, *, keeps_folder: bool = False
    ) -> Ran:
        """Run *command* in *cwd*, confined to *view* if given. After the timeout, and on cancellation, kill its tree.

        With *keeps_folder*, a shell of Unix tells the current folder at its end.
        Raises SandboxRefused if it cannot be confined.
        """
        own = Descendants()
        environment = own.environment(self.environment)
        if view is not None:
            await anyio.to_thread.run_sync(check_confinement, view)  # its first trial takes a moment
        disk = Disk.of(cwd)
        async with _new_group(own.mark, self.limits) as group:
            with nullcontext(Launch([], environment)) if view is None else confine(view, environment) as launch:
                words = self.words(launch, TELL_FOLDER + command if keeps_folder else command, view)
                if which(words[0]) is None:
                    return Ran(CANNOT_START, "", f"cannot start {words[0]} in {cwd}: it does not exist")
                try:
                    process = await anyio.open_process(
                        [*group.prefix, *words],
                        stdin=subprocess.DEVNULL,
                        cwd=cwd,
                        env=launch.environment,
                        start_new_session=sys.platform != "win32",
                        pass_fds=launch.pass_fds,
                    )
                except (OSError, ValueError) as error:  # ValueError: a command with a zero byte
                    why = getattr(error, "strerror", None) or str(error)
                    return Ran(CANNOT_START, "", f"cannot start {self.argv[0]} in {cwd}: {why}")
            ran = await self._finish(process, own, timeout_seconds, disk)
            return _with_folder(ran) if keeps_folder else ran

    def words(self, launch: Launch, command: str, view: View | None) -> list[str]:
        """Return the program and its arguments that run *command*.

        A login shell sets another PATH; that of the caller, such as of an activated environment, comes before it.
        """
        path = (launch.environment or {}).get("PATH", "")
        if path and sys.platform != "win32":
            command = f'export PATH={shlex.quote(path)}:"$PATH"\n{command}'
        return [*launch.prefix, *(self.limits.prefix if view is not None else ()), *self.argv, command]

    async def _finish(self, process: anyio.abc.Process, own: Descendants, timeout_seconds: float, disk: Disk) -> Ran:
        out, err = OutputTail(self.max_output_bytes), OutputTail(self.max_output_bytes)
        timed_out, exceeded = False, ""
        running.add(own)
        try:
            with anyio.move_on_after(timeout_seconds) as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(drain, process.stdout, out)
                    tasks.start_soon(drain, process.stderr, err)
                    exceeded = await self._wait_within_limits(process, disk)
                    # Background processes may hold the pipes open, so they are ended with the command.
                    _signal_tree(process.pid, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
                    await anyio.to_thread.run_sync(own.kill_all)
            timed_out = scope.cancelled_caught
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, own)
            running.discard(own)
        code = TIMED_OUT if timed_out else KILLED if exceeded else (process.returncode or 0)
        return Ran(code, out.text(), err.text(), timed_out, exceeded)

    async def _wait_within_limits(self, process: anyio.abc.Process, disk: Disk) -> str:
        """Wait for the end of the command; returns the limit that its processes exceeded before it, or ""."""
        exceeded = ""
        async with anyio.create_task_group() as tasks:

            async def look() -> None:
                nonlocal exceeded
                for pause in intervals():
                    await anyio.sleep(pause)
                    exceeded = await anyio.to_thread.run_sync(self.limits.exceeded_by, process.pid, disk)
                    if exceeded:
                        break
                tasks.cancel_scope.cancel()

            tasks.start_soon(look)
            await process.wait()
            tasks.cancel_scope.cancel()
        return exceeded


def _with_folder(ran: Ran) -> Ran:
    """Return the result with the folder that `TELL_FOLDER` wrote at the end of its error output."""
    told, mark, folder = ran.stderr.rpartition(FOLDER_MARK)
    return replace(ran, stderr=told.removesuffix("\n"), folder=folder.strip("\n")) if mark else ran


@asynccontextmanager
async def _new_group(name: str, limits: ProcessLimits) -> AsyncGenerator[ControlGroup]:
    """Yield a control group for a command, and remove it after the command has ended."""
    group = new_control_group(name, limits)
    try:
        yield group
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(group.close)


async def _end(process: anyio.abc.Process, own: Descendants) -> None:
    """Kill the command and all its descendants."""
    descendants = tree(process.pid)
    if process.returncode is None:
        _signal_tree(process.pid, signal.SIGTERM)
        with anyio.move_on_after(KILL_AFTER_SECONDS):
            await process.wait()
    if sys.platform != "win32":
        _signal_tree(process.pid, signal.SIGKILL)
    for child in descendants:
        try:
            child.kill()
        except psutil.Error:
            continue
    await anyio.to_thread.run_sync(own.kill_all)
    await process.wait()
    await process.aclose()


def _signal_tree(pid: int, number: int) -> None:
    try:
        if sys.platform == "win32":
            psutil.Process(pid).send_signal(number)
        else:
            os.killpg(pid, number)
    except (ProcessLookupError, PermissionError, psutil.Error):
        return
