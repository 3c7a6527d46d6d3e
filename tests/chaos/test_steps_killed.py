"""kill -9 of the process at each step of a pipeline: the next one ends the run with the same files.

``CRASHES=all`` kills at every step of the node pipeline; without it, at a part that the printed seed chooses.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FEW = {"node": "1", "csv-contract": "0"}
"""Steps at which a run of CI kills besides the first and the last."""


@pytest.mark.parametrize("moment", ["during", "after"])
@pytest.mark.parametrize("pipeline", list(FEW))
def test_pipeline_survives_kill_9_at_its_steps(tmp_path: Path, pipeline: str, moment: str) -> None:
    command = [sys.executable, "-m", "tests.support.killed_steps", str(tmp_path), pipeline, moment, FEW[pipeline]]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"killed {moment}" in ended.stdout
