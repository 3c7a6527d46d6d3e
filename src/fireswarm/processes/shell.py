"""Run one shell command with limits on time and output. Its whole process tree is killed at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from fireswarm.processes.confinement.paths.names import CALLERS_PATH
from fireswarm.processes.confinement.process_limits import ProcessLimits
from fireswarm.processes.confinement.view import View
from fireswarm.processes.output import CANNOT_START, KILLED, OutputTail
from fireswarm.processes.run import CannotStart, Confined, Program

KILL_AFTER_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL, so that a command can remove partial files."""

FOLDER_MARK = "\x1efolder:"
TELL_FOLDER = f"""trap 'printf "\\n{FOLDER_MARK}%s" "$PWD" >&2' EXIT\n"""
"""Line before a command that prints the shell's folder at the end."""


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a command. ``stdout`` and ``stderr`` are limited in size: the middle is omitted, with a note."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    ended: str = ""
    """The exceeded limit on its processes, if any."""

    folder: str = ""
    """The current folder at its end, if the shell reported it, as Unix shells do."""

    set_aside: tuple[str, ...] = ()
    """Lines on names of the workspace that it made although only a person makes them."""


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
        self,
        command: str,
        cwd: Path,
        timeout_seconds: float,
        view: View | None = None,
        interrupted: Callable[[Ran], None] | None = None,
    ) -> Ran:
        """Run *command* in *cwd*, confined to *view* if given.

        After the timeout, or on cancellation, kill its process tree; *interrupted* gets what it has printed.

        Raises SandboxRefused if the view cannot be enforced.
        """
        if view is not None:
            await anyio.to_thread.run_sync(view.check)  # the first test takes a moment
        out, err = OutputTail(self.max_output_bytes), OutputTail(self.max_output_bytes)
        line = command if sys.platform == "win32" else TELL_FOLDER + command
        try:
            started = Confined.start(self.program(line, cwd), view, self.limits, out, err)
        except CannotStart as error:
            return Ran(CANNOT_START, "", str(error))
        try:
            ended = await started.finish(timeout_seconds, grace=KILL_AFTER_SECONDS)
        except BaseException:  # cancellation: it is raised again
            if interrupted is not None:
                interrupted(_with_folder(Ran(KILLED, out.text(), err.text())))
            raise
        reason = "" if ended.timed_out else ended.reason
        aside = tuple(started.launch.set_aside)
        return _with_folder(Ran(ended.code, out.text(), err.text(), ended.timed_out, reason, set_aside=aside))

    def program(self, command: str, cwd: Path) -> Program:
        """Return the program that runs *command* in *cwd*.

        A login shell sets another PATH; the caller's PATH, such as of an activated environment, precedes it.
        """
        environment = dict(os.environ if self.environment is None else self.environment)
        if environment.get("PATH") and sys.platform != "win32":
            environment[CALLERS_PATH] = environment["PATH"]
            command = f'export PATH="${CALLERS_PATH}:$PATH"; unset {CALLERS_PATH}\n{command}'
        return Program((*self.argv, command), cwd, environment)


def _with_folder(ran: Ran) -> Ran:
    """Return the result with the folder that `TELL_FOLDER` wrote at the end of its error output."""
    told, mark, folder = ran.stderr.rpartition(FOLDER_MARK)
    return replace(ran, stderr=told.removesuffix("\n"), folder=folder.strip("\n")) if mark else ran
