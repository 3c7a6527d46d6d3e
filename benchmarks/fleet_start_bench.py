"""How fast `swarm up` starts role processes, and what memory they take: as copies of one process, and each by itself.

Seconds until five role processes work; seconds until a killed one works again; memory of all of them, in which a page
that several share is counted once (Linux: proportional set size).
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil

from benchmarks.common import emit
from fireswarm.processes.startup import loop_options
from fireswarm.settings import load_settings
from fireswarm.swarm.opening.embedded_store import serving
from fireswarm.swarm.worker.supervisor import Supervisor
from tests.support.fleet import ROLES, lay_out

ROUNDS = 3
LIMIT_SECONDS = 120
WORKS = " works as role "


def main() -> None:
    """Measure both ways in turn, each in a new process; print medians."""
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            found = anyio.run(start, Path(folder), sys.argv[1] == "copies", backend_options=loop_options())
            print(json.dumps(found))
        return
    measured: dict[str, list[dict[str, float]]] = {"copies": [], "separate": []}
    for _ in range(ROUNDS):
        for kind, results in measured.items():
            command = [sys.executable, "-m", "benchmarks.fleet_start_bench", kind]
            results.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    medians = {
        f"{kind}_{name}": round(statistics.median(result[name] for result in results), 2)
        for kind, results in measured.items()
        for name in results[0]
    }
    emit("fleet_start", **medians)


async def start(root: Path, forks: bool) -> dict[str, float]:
    """Start a fleet in *root*, kill one process, and stop. Returns seconds and megabytes."""
    lay_out(root, {"idle": "def run(request):\n    return None\n"}, settings={})
    settings = load_settings(root, environment={})
    async with serving(settings) as uri:
        fleet = Supervisor.plan(
            dict.fromkeys(ROLES, 1),
            arguments=["--root", str(root), "--store", uri],
            environment={},
            logs=root / "logs",
            drain_seconds=1.0,
        )
        fleet.forks = forks
        started = time.perf_counter()
        async with fleet.running():
            await until(lambda: count(fleet.logs) == len(ROLES))
            works = time.perf_counter() - started
            everything = psutil.Process().children(recursive=True)
            megabytes = sum(process.memory_full_info().pss for process in everything) / 1e6
            process = fleet.places[0].process
            if process is None:
                raise AssertionError("a role that works has a process")
            killed = time.perf_counter()
            process.send_signal(signal.SIGKILL)
            await until(lambda: count(fleet.logs) == len(ROLES) + 1)
            restarted = time.perf_counter() - killed
    return {"start_seconds": works, "restart_seconds": restarted, "megabytes": megabytes}


def count(logs: Path) -> int:
    """Return the number of starts that the logs tell of."""
    return sum(log.read_text().count(WORKS) for log in logs.glob("*.log"))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what other processes do."""
    with anyio.fail_after(LIMIT_SECONDS):
        while not condition():
            await anyio.sleep(0.01)


if __name__ == "__main__":
    main()
