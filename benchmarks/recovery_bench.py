"""How long a task stands still when its process ends: after SIGKILL (a lease at most) and after SIGTERM.

Two scouts run as processes; one holds a task that never ends. Seconds from the signal until the other
scout has started the task, by the documents' own times.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import psutil

from benchmarks.common import emit
from fireswarm.contracts.swarm.status import AgentState
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.processes.startup import loop_options
from fireswarm.settings import load_settings
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from tests.support.fleet import lay_out, swarm_up

LEASE_SECONDS = 5.0
DRAIN_SECONDS = 0.5
ROUNDS = 3
SCOUTS = 3
ENDLESS = """
import threading

def run(request):
    threading.Event().wait()
"""
SETTINGS = {
    "session": "bench",
    "leases": {"lease_seconds": LEASE_SECONDS},
    "worker": {
        "concurrency": 1,
        "drain_seconds": DRAIN_SECONDS,
        "heartbeat_idle_seconds": 1,
        "heartbeat_working_seconds": 1,
    },
}


async def recover(swarm: SwarmParts, number: int, kind: signal.Signals) -> float:
    """Signal the holder of a fresh task; seconds until its next epoch was claimed."""
    while await idle_agents(swarm) < SCOUTS:
        await anyio.sleep(0.1)
    spec = TaskSpec(objective=f"{kind.name} {number}", assigned_to="scout", session_hash="bench", max_attempts=20)
    task_id = (await swarm.board.submit(spec)).task.task_id
    holder = await holder_pid(swarm, task_id, epoch=1)
    sent = datetime.now(UTC)
    os.kill(holder, kind)
    await holder_pid(swarm, task_id, epoch=2)
    lease = (await swarm.board.get(task_id)).lease
    assert lease is not None
    assert lease.claimed_at is not None
    await swarm.board.cancel(task_id)
    return (lease.claimed_at - sent).total_seconds()


async def idle_agents(swarm: SwarmParts) -> int:
    """Scouts that run and wait for work: the one killed in the last round is back."""
    found = await swarm.heartbeats.latest()
    return sum(status.status is AgentState.IDLE and psutil.pid_exists(status.pid) for status in found)


async def holder_pid(swarm: SwarmParts, task_id: str, *, epoch: int) -> int:
    """Wait until *epoch* of the task is held; the pid of the process that holds it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        task = await swarm.board.get(task_id)
        if task.status is TaskStatus.IN_PROGRESS and task.epoch == epoch and task.lease is not None:
            agents = {status.agent_id: status.pid for status in await swarm.heartbeats.latest()}
            if task.lease.owner_agent_id in agents:
                return agents[task.lease.owner_agent_id]
        await anyio.sleep(0.02)
    task = await swarm.board.get(task_id)
    raise AssertionError(f"nobody took epoch {epoch} of {task_id}: {task.status}, epoch {task.epoch}, {task.lease}")


async def main() -> None:
    """Three rounds of each signal."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root, {"endless": ENDLESS}, settings=SETTINGS)
        with swarm_up(root, "--roles=scout", f"--replicas=scout={SCOUTS}"):
            while "FIRESTORE_EMULATOR_HOST" not in (root / "up.log").read_text():
                await anyio.sleep(0.05)
            async with open_parts(load_settings(root, environment={})) as swarm:
                for kind in (signal.SIGKILL, signal.SIGTERM):
                    took = [await recover(swarm, number, kind) for number in range(ROUNDS)]
                    figures[f"{kind.name.lower()}_seconds"] = {
                        "median": round(statistics.median(took), 2),
                        "max": round(max(took), 2),
                    }
    emit("recovery", lease_seconds=LEASE_SECONDS, drain_seconds=DRAIN_SECONDS, **figures)


if __name__ == "__main__":
    anyio.run(main, backend_options=loop_options())
