"""The way in which a machine confines code: bubblewrap if it works, otherwise Landlock; on macOS Seatbelt."""

from __future__ import annotations

import sys
from typing import Literal

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import find_bubblewrap, reason_against
from fireswarm.processes.confinement.landlock.launch import confine_with_landlock, landlock_version
from fireswarm.processes.confinement.paths.seatbelt import confine_with_seatbelt, reason_against_seatbelt

Rung = Literal["bubblewrap", "landlock", "seatbelt"]

CONFINING = ("auto", "bubblewrap", "landlock")
"""Values of the setting with which this program confines code itself."""

BY_PATHS = {"landlock": confine_with_landlock, "seatbelt": confine_with_seatbelt}
"""The rungs on which code sees the files of the machine at their paths, and what starts a command there."""


def choose_rung(confinement: str = "auto", owner: tuple[int, int] | None = None) -> Rung:
    """Return how this machine confines a command of *owner*, a user and a group (None: those of this process).

    The first call runs a program as a test. Raises SandboxRefused, with the command that mends it.
    """
    if confinement == "landlock":
        if landlock_version():
            return "landlock"
        raise SandboxRefused("this kernel has no Landlock: it needs Linux 5.13 or newer, with Landlock enabled")
    if sys.platform == "darwin" and confinement != "bubblewrap":
        if reason := reason_against_seatbelt():
            raise SandboxRefused(reason)
        return "seatbelt"
    try:
        program, _ = find_bubblewrap()
        reason = reason_against(program, owner)
        if not reason:
            return "bubblewrap"
        refusal = SandboxRefused(f"bubblewrap cannot confine commands on this machine: {reason}")
    except SandboxRefused as error:
        refusal = error
    if confinement != "bubblewrap" and landlock_version():
        return "landlock"
    raise refusal
