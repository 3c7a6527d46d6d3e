"""The load that a heartbeat reports."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

from fireswarm.contracts.swarm.status import AgentStatus, QueueHints
from fireswarm.swarm.worker.heartbeat import ProcessTree

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def test_what_an_agent_says_of_its_places_follows_what_it_holds_now() -> None:
    hints = QueueHints(running=1, capacity=4, holding=("t1",))
    given = {"agent_id": "a", "role": "scout", "session_hash": "s", "status": "working", "created_at": EPOCH}
    status = AgentStatus.model_validate({**given, "queue_hints": hints, "message": hints.describe_places()})
    assert status.with_held(()).message == "0 of 4 places taken"
    assert status.model_copy(update={"message": "paused by ada"}).with_held(()).message == "paused by ada"
