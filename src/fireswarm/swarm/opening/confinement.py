"""Check before the work starts whether this machine can confine the code that the roles of a swarm run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.ladder import CONFINING, choose_rung
from fireswarm.processes.confinement.landlock.launch import missing_limits
from fireswarm.processes.confinement.view import View
from fireswarm.settings import Settings
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.running.execute import is_foreign


def refusal(confinement: str) -> str:
    """Return why this machine cannot confine code, with the command that mends it; "" if it can.

    *confinement* is the value of the setting; with ``none``, the machine need not confine code.
    """
    if confinement == "none":
        return ""
    try:
        View(Path(tempfile.gettempdir()), confinement=confinement).check()
    except SandboxRefused as error:
        return str(error)
    return ""


def describe(confinement: str) -> str:
    """Return how this machine confines code, for people; "" if it does not. Call it where `refusal` is ""."""
    if confinement not in CONFINING:
        return f"runtime.confinement is {confinement}" if confinement == "container" else ""
    rung = choose_rung(confinement)
    if rung != "landlock":
        return f"code is confined with {rung.replace('seatbelt', 'Seatbelt')}"
    return ", ".join(["code is confined with Landlock", *(f"without a limit on {each}" for each in missing_limits())])


def confined_skills(settings: Settings, cards: Iterable[RoleCard], catalog: Catalog) -> list[str]:
    """Return the names of the roles' skills whose code runs only confined: they block where that is impossible."""
    if settings.runtime.confinement not in CONFINING:
        return []
    named = {name for card in cards if not card.trusted for name in card.skills}
    return sorted(name for name in named if (skill := catalog.skills.get(name)) and skill.entry and is_foreign(skill))
