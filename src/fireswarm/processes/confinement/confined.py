"""Run a program to its end within a view, for code that was generated or comes from strangers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.control_group import new_control_group
from fireswarm.processes.confinement.limits import Disk, ProcessLimits, intervals
from fireswarm.processes.confinement.view import Launch, View, confine
from fireswarm.processes.descendants import Descendants
from fireswarm.processes.output import CANNOT_START, KILLED, TIMED_OUT

LIMITS = ProcessLimits()

Elsewhere = Callable[[Sequence[str], View, Mapping[str, str], float], tuple[int, str]]

_elsewhere: list[Elsewhere] = []

NOT_EXECUTED = "prlimit: failed to execute "
"""Beginning of the only line of output if there is no such program in the view; the exit code is then 127."""

REFUSALS = "bwrap: "
"""Beginning of bubblewrap's only line of output when it could not start the program; its exit code is then 1."""


def run_elsewhere(run: Elsewhere) -> None:
    """Let *run* take over every later `run_confined` of this process, which is confined itself and cannot do it."""
    _elsewhere[:] = [run]


def run_confined(
    command: Sequence[str],
    view: View,
    environment: Mapping[str, str],
    seconds: float,
    *,
    confinement: str = "bubblewrap",
    has_ended: Callable[[], bool] = lambda: False,
) -> tuple[int, str]:
    """Run *command* in the view's workspace and return its exit code and output, stdout and stderr together.

    It is ended after *seconds*, when it exceeds `ProcessLimits`, or soon after *has_ended* returns True, with all that
    it started. By *confinement* ``none`` the operator allows it the whole machine, by ``container`` what is in the
    container. Blocks. Raises SandboxRefused if it cannot be confined.
    """
    if _elsewhere:
        return _elsewhere[0](command, view, environment, seconds)
    view = replace(view, container=confinement == "container")
    own = Descendants()
    marked = own.environment(environment)
    open_to_all = contextlib.nullcontext(Launch([], marked))
    limited = [] if confinement == "none" else LIMITS.prefix
    disk = Disk.of(view.workspace)
    with contextlib.closing(new_control_group(own.mark, LIMITS)) as group:
        with open_to_all if confinement == "none" else confine(view, marked) as launch:
            process = subprocess.Popen(
                [*group.prefix, *launch.prefix, *limited, *command],
                cwd=view.workspace,
                env=launch.environment,
                pass_fds=launch.pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        told, code = _follow(process, own, seconds, has_ended, disk)
    if code == 1 and launch.prefix and not view.container and told.startswith(REFUSALS) and told.count("\n") == 1:
        raise SandboxRefused(f"bubblewrap could not start {command[0]}: {told.removeprefix(REFUSALS).strip()}")
    if code == CANNOT_START and limited and told.startswith(NOT_EXECUTED) and told.count("\n") == 1:
        raise SandboxRefused(f"bubblewrap could not start {command[0]}: {told.removeprefix(NOT_EXECUTED).strip()}")
    return code, told


def _follow(
    process: subprocess.Popen[str], own: Descendants, seconds: float, has_ended: Callable[[], bool], disk: Disk
) -> tuple[str, int]:
    """Return the output and exit code of a process that may take *seconds*, and end all that it started."""
    output: list[str] = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read() if process.stdout else ""))
    with process:
        reader.start()
        try:
            code, reason = _wait(process, seconds, has_ended, disk)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            own.kill_all()  # a process in another session may hold the output open
            reader.join()
    return "".join(output) + reason, code


def _wait(process: subprocess.Popen[str], seconds: float, has_ended: Callable[[], bool], disk: Disk) -> tuple[int, str]:
    """Wait for the end of a process that may take *seconds*; returns its exit code and the reason to end it before."""
    until = time.monotonic() + seconds
    for pause in intervals():
        if (left := until - time.monotonic()) <= 0:
            break
        try:
            return process.wait(min(left, pause)), ""
        except subprocess.TimeoutExpired:
            if reason := "its caller has ended" if has_ended() else LIMITS.exceeded_by(process.pid, disk):
                return KILLED, f"\nended: {reason}"
    return TIMED_OUT, f"\nended after {seconds:g} s"
