"""The advice for a missing extra is a command that can be run here."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from fireswarm.settings.extras import install_command, packages_of

ROOT = Path(__file__).resolve().parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_advice_names_the_packages_and_the_interpreter(extra: str) -> None:
    assert sorted(packages_of(extra)) == sorted(EXTRAS[extra])
    words = shlex.split(install_command(extra).partition(" (")[0])
    assert sys.executable in words
    assert set(EXTRAS[extra]) <= set(words)
    assert "fireswarm" not in " ".join(words[-len(EXTRAS[extra]) :])


@pytest.mark.parametrize(
    ("pip", "uv", "writable", "expected"),
    [
        (True, False, True, "-m pip install"),
        (False, True, True, "uv pip install --python"),
        (False, False, True, "-m ensurepip &&"),
        (True, False, False, "as a user who can write to"),
    ],
)
def test_the_advice_fits_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, pip: bool, uv: bool, writable: bool, expected: str
) -> None:
    def answer(value: object) -> Callable[..., object]:
        return lambda *_: value

    monkeypatch.setattr(importlib.util, "find_spec", answer(object() if pip else None))
    monkeypatch.setattr(shutil, "which", answer("/usr/bin/uv" if uv else None))
    monkeypatch.setattr(os, "access", answer(writable))
    assert expected in install_command("predict")
