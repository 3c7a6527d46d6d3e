"""The programs that fireswarm runs for itself: found in folders of the system only.

A folder that a task is about can hold a program of the same name, such as ``.venv/bin/git`` or
``node_modules/.bin/bwrap``, and its folder can be in the PATH. Such a program would run without confinement.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

SYSTEM_FOLDERS = (
    *("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"),
    *("/opt/homebrew/bin", "/opt/local/bin", "/home/linuxbrew/.linuxbrew/bin"),
    *("/run/current-system/sw/bin", "/run/wrappers/bin", "/nix/var/nix/profiles/default/bin"),
)
"""Folders that only an administrator fills."""


def find_program(name: str) -> str | None:
    """Return the path of a program in those folders of the PATH that belong to the system, or None."""
    listed = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    if sys.platform == "win32":
        here = Path.cwd()
        safe = [folder for folder in listed if Path(folder).is_absolute() and not Path(folder).is_relative_to(here)]
    else:
        safe = [folder for folder in listed if folder.rstrip("/") in SYSTEM_FOLDERS]
    return shutil.which(name, path=os.pathsep.join(safe)) if safe else None
