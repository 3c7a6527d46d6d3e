"""kill -9 before or after any commit of a plan that fails, changes, asks, revises and goes on: nothing is lost.

``CRASHES=all`` tries every commit; without it, a part that the printed seed chooses.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FEW = {"firelite": "4", "emulator": "2"}
"""Commits at which a run of CI kills besides the first and the last, each before and after."""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("store", ["firelite", "emulator"])
def test_changed_plan_survives_kill_9_at_any_commit(tmp_path: Path, store: str, moment: str) -> None:
    if store == "emulator" and "FIRESTORE_EMULATOR_HOST" not in os.environ:
        pytest.skip("no emulator: `make test-emulator` starts it")
    command = [sys.executable, "-m", "tests.support.killed_rounds", str(tmp_path), store, moment, FEW[store]]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"killed {moment}" in ended.stdout
