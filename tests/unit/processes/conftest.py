"""Branch coverage of the code that runs in child processes: each child measures itself when coverage is on."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage import Coverage

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def measure_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python processes that a test starts read coverage's settings, and keep their data beside the parent's."""
    if Coverage.current() is not None:
        monkeypatch.setenv("COVERAGE_PROCESS_START", str(ROOT / "pyproject.toml"))
        monkeypatch.setenv("COVERAGE_FILE", str(ROOT / ".coverage"))
