"""The load that a heartbeat reports."""

from __future__ import annotations

import subprocess
import sys

from fireswarm.swarm.worker.heartbeat import ProcessTree


def test_heartbeat_measures_the_process_with_its_children() -> None:
    tree = ProcessTree()
    _, alone = tree.load()
    child = subprocess.Popen(
        [sys.executable, "-c", "sum(range(10**7)); print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None and child.stdout.readline()
        cpu, together = tree.load()
    finally:
        child.communicate(b"\n")
    assert together > alone + 1_000_000
    assert cpu > 0
