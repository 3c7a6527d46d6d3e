"""The number of file changes on a task's path through the code stays limited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_skill_task_changes_files_no_more_often_than_allowed() -> None:
    command = [sys.executable, "tools/trace_turn.py"]
    traced = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert traced.returncode == 0, traced.stdout + traced.stderr
