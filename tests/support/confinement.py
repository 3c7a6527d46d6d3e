"""Machines that confine code in other ways: without Landlock, or with programs from another folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.processes.confinement import ladder, programs, skill_view, view
from fireswarm.processes.confinement.landlock import launch


def hide_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find a kernel without Landlock."""
    monkeypatch.setattr(ladder, "landlock_version", lambda: 0)
    monkeypatch.setattr(launch, "landlock_version", lambda: 0)


def run_programs_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find its own programs in *folder* too, as if it belonged to the system."""
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(folder), *programs.SYSTEM_FOLDERS))


def use_rung(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process confine code with *rung*, ``bubblewrap`` or ``landlock``, if no other is named."""

    def choose(confinement: str = "auto", owner: tuple[int, int] | None = None) -> ladder.Rung:
        return ladder.choose_rung(rung if confinement == "auto" else confinement, owner)

    monkeypatch.setattr(view, "choose_rung", choose)
    monkeypatch.setattr(skill_view, "choose_rung", choose)
