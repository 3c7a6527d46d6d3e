"""The number of file changes on the paths of a task and of a call stays limited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_task_and_call_change_files_no_more_often_than_allowed() -> None:
    command = [sys.executable, "tools/trace_turn.py"]
    traced = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert traced.returncode == 0, traced.stdout + traced.stderr
