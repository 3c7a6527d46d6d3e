"""Commands in a container that is itself the boundary, such as on Cloud Run, where bubblewrap cannot work.

A command has no root privileges, cannot get any, and finds no secrets, neither in its environment nor in that of our
processes. It can read and write what the container permits its user, and has the container's network.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from fireswarm.contracts.base import is_yes
from fireswarm.errors import SandboxRefused

SETPRIV = "/usr/bin/setpriv"
NOBODY = 65_534
"""User and group of a command that root starts."""

VARIABLE = "FIRESWARM_HIDE_ENVIRONMENT"
"""Environment variable of processes that hide their environment from commands of the same user."""

_PR_SET_DUMPABLE = 4


def start_without_rights() -> list[str]:
    """Return the command prefix that gives up all privileges. Raises SandboxRefused if that is impossible."""
    if sys.platform != "linux" or not Path(SETPRIV).exists():
        raise SandboxRefused(f"the confinement `container` needs Linux with {SETPRIV} (package util-linux)")
    words = [SETPRIV, "--no-new-privs", "--inh-caps=-all"]
    if os.geteuid() == 0:
        words += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"]
    return words


def container_environment(passed: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: variables without secrets, and ``/tmp`` as its home."""
    return {**passed, "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "agent", "LOGNAME": "agent"}


def hide_environment() -> None:
    """Hide the environment and memory of this process from commands of the same user; its children do the same."""
    os.environ[VARIABLE] = "1"
    _hide()


def hide_if_parent_does() -> None:
    """Hide the environment of this process if its parent hides its own."""
    if is_yes(os.environ.get(VARIABLE)):
        _hide()


def _hide() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
