"""The way in which a machine confines code: bubblewrap if it works, otherwise Landlock."""

from __future__ import annotations

from typing import Literal

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import find_bubblewrap, reason_against
from fireswarm.processes.confinement.landlock.launch import landlock_version

Rung = Literal["bubblewrap", "landlock"]

CONFINING = ("auto", "bubblewrap", "landlock")
"""Values of the setting with which this program confines code itself."""


def choose_rung(confinement: str = "auto", owner: tuple[int, int] | None = None) -> Rung:
    """Return how this machine confines a command of *owner*, a user and a group (None: those of this process).

    The first call runs a program as a test. Raises SandboxRefused, with the command that mends it.
    """
    if confinement == "landlock":
        if landlock_version():
            return "landlock"
        raise SandboxRefused("this kernel has no Landlock: it needs Linux 5.13 or newer, with Landlock enabled")
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
