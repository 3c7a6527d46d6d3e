"""Confinement of generated code, if this machine supports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import which

from fireswarm.processes.confinement.mounts import system_mounts

PROBE_SECONDS = 60.0


def confinement_prefix(place: Path, *libraries: str) -> list[str]:
    """Return the arguments to put before a command of this interpreter in order to confine it.

    The command then has no network, can write only to *place*, and can read only programs and *libraries*. Empty if
    bubblewrap is missing or the kernel does not allow it.
    """
    program = which("bwrap")
    if program is None:
        return []
    prefix = [program, *system_mounts(sys.base_prefix, sys.prefix, *libraries)]
    prefix += ["--proc", "/proc", "--dev", "/dev", "--bind", str(place), str(place)]
    prefix += ["--unshare-net", "--unshare-ipc", "--unshare-pid", "--cap-drop", "ALL", "--die-with-parent", "--"]
    tried = subprocess.run([*prefix, sys.executable, "-c", ""], capture_output=True, timeout=PROBE_SECONDS, check=False)
    return prefix if tried.returncode == 0 else []
