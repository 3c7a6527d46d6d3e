"""Open tabs of the console on a busy swarm: `python -m tests.browser.tabs TABS MINUTES` prints a line each minute.

A line has the heap and the nodes of the first tab after a collection of garbage, and the load of the process that
serves the console: CPU in percent of one core, resident megabytes.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import anyio
import psutil
from playwright.sync_api import expect

from fireswarm.client import Swarm
from tests.support.screens import WAIT_MS, chromium, open_place, watched

TASKS_A_MINUTE = 30
"""Each changes about four times: queued, held, done, and once more for its heartbeat."""


def submit_until(stopped: threading.Event, folder: Path) -> None:
    """Submit small tasks until *stopped*."""

    async def submit() -> None:
        async with Swarm.open(root=folder) as swarm:
            number = 0
            while not stopped.is_set():
                number += 1
                await swarm.submit(f"note {number}", role="memory", skill="note")
                await anyio.sleep(60 / TASKS_A_MINUTE)

    anyio.run(submit)


def main() -> None:
    """Open the tabs and watch them."""
    tabs, minutes = int(sys.argv[1]), int(sys.argv[2])
    expect.set_options(timeout=WAIT_MS)
    stopped = threading.Event()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        browser = stack.enter_context(chromium())
        served = stack.enter_context(open_place(Path(place) / "garden", "memory"))
        consoles = [stack.enter_context(watched(served, browser)) for _ in range(tabs)]
        for console in consoles:
            console.open("")
        assert served.fleet is not None
        server = psutil.Process(served.fleet.pid)
        submitting = threading.Thread(target=submit_until, args=(stopped, served.folder))
        submitting.start()
        session = consoles[0].page.context.new_cdp_session(consoles[0].page)
        session.send("Performance.enable")
        server.cpu_percent()
        try:
            for minute in range(1, minutes + 1):
                began = time.monotonic()
                while time.monotonic() - began < 60:
                    consoles[0].page.wait_for_timeout(1_000)
                session.send("HeapProfiler.collectGarbage")
                metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
                print(
                    f"minute {minute}: heap {metrics['JSHeapUsedSize'] / 1e6:.1f} MB, {metrics['Nodes']:.0f} nodes, "
                    f"{metrics['JSEventListeners']:.0f} listeners; server {server.cpu_percent():.0f} % CPU, "
                    f"{server.memory_info().rss / 1e6:.0f} MB",
                    flush=True,
                )
        finally:
            stopped.set()
            submitting.join()


if __name__ == "__main__":
    main()
