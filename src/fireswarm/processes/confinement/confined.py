"""Run a program to its end within a view, for code that was generated or comes from strangers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from fireswarm.processes.confinement.view import Launch, View, confine

TIMED_OUT = 124
"""Exit code of a program that was ended, as ``timeout`` uses it."""


def run_confined(
    command: Sequence[str],
    view: View,
    environment: Mapping[str, str],
    seconds: float,
    *,
    confinement: str = "bubblewrap",
) -> tuple[int, str]:
    """Run *command* in the view's workspace and return its exit code and output, stdout and stderr together.

    It is ended after *seconds*, with everything that it started. By *confinement* ``none`` the operator allows it the
    whole machine. Blocks. Raises SandboxRefused if it cannot be confined.
    """
    open_to_all = contextlib.nullcontext(Launch([], dict(environment)))
    with open_to_all if confinement == "none" else confine(view, environment) as launch:
        process = subprocess.Popen(
            [*launch.prefix, *command],
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
    with process:
        try:
            told, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            told, _ = process.communicate()
            return TIMED_OUT, f"{told}\nended after {seconds:g} s"
    return process.returncode, told
