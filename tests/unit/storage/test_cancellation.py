"""Calls to a store that does not answer, in a process without other event loops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_calls_to_a_silent_store_end_with_their_scope() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    module = str(Path(__file__).with_name("silent_store.py"))
    done = subprocess.run([*command, module], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "31 passed" in done.stdout
