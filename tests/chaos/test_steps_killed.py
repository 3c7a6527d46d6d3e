"""kill -9 of the process at each step of a pipeline: the next one ends the run with the same files.

``ROUNDS=all`` kills at every step of the node pipeline; without it, at a part that the printed seed chooses.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PART = {"node": "3", "csv-contract": "all"}
"""Number of steps at which a run of CI kills."""


@pytest.mark.parametrize("moment", ["during", "after"])
@pytest.mark.parametrize("pipeline", list(PART))
def test_pipeline_survives_kill_9_at_its_steps(tmp_path: Path, pipeline: str, moment: str) -> None:
    many = os.environ.get("ROUNDS", PART[pipeline])
    command = [sys.executable, "-m", "tests.support.killed_steps", str(tmp_path), pipeline, moment, many]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"killed {moment}" in ended.stdout
