"""Start and end of ``/bin/true``: as a plain child process, and confined on each rung of the ladder that works here."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.common import emit
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import run_confined

RUNS = 15
COMMAND = ["/bin/true"]
RUNGS = ("seatbelt",) if sys.platform == "darwin" else ("bubblewrap", "landlock")


def median_ms(call: Callable[[], object]) -> float:
    """Return the median time of a call in milliseconds, after one call that is not counted."""
    times: list[float] = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e3)
    return round(statistics.median(times[1:]), 1)


def main() -> None:
    """Print the benchmark's line."""
    results = {"unconfined_ms": median_ms(partial(subprocess.run, COMMAND, check=True))}
    with tempfile.TemporaryDirectory() as folder:
        for rung in RUNGS:
            view = View(Path(folder).resolve(), writable=True, confinement=rung)
            try:
                call = partial(run_confined, COMMAND, view, dict(os.environ), 30, confinement=rung)
                results[f"{rung}_ms"] = median_ms(call)
            except SandboxRefused:
                continue
    emit("confinement", **results)


if __name__ == "__main__":
    main()
