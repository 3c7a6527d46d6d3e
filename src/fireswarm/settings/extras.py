"""Say how to install what an extra needs, by a command that works for this interpreter."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, requires

from fireswarm.contracts.base import command_line


def packages_of(extra: str) -> list[str]:
    """Return the requirements of an extra, as in the package's metadata; [] for an unknown one."""
    try:
        lines = requires("fireswarm") or []
    except PackageNotFoundError:
        return []
    parts = [line.partition(";") for line in lines]
    return [need.replace(" ", "") for need, _, marker in parts if f"extra=='{extra}'" in _plain(marker)]


def _plain(marker: str) -> str:
    return marker.replace(" ", "").replace('"', "'")


def install_command(extra: str) -> str:
    """Return a command that installs an extra's packages for this interpreter, which may have no pip."""
    packages = command_line(*packages_of(extra)) or command_line(f"fireswarm[{extra}]")
    python = command_line(sys.executable)
    if importlib.util.find_spec("pip") is not None:
        command = f"{python} -m pip install {packages}"
    elif shutil.which("uv"):
        command = f"uv pip install --python {python} {packages}"
    else:
        command = f"{python} -m ensurepip && {python} -m pip install {packages}"
    folder = sysconfig.get_path("purelib")
    return command if os.access(folder, os.W_OK) else f"{command} (as a user who can write to {folder})"
