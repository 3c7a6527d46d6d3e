"""The console over 10,000 tasks, an objective of 500 tasks and a run of 20,000 events, with a hundred changes a minute.

Pages are made in this process and read through ASGI, without a network: seconds until the whole page is there. The busy
minutes are measured twice: on a store whose reads cost nothing, and as on Firestore, where they are billed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio
import httpx2
import psutil

from benchmarks.common import benchmark_kit, emit, percentiles, submit_noops
from fireswarm.api.console.application import make_console
from fireswarm.api.console.feed import MINUTE
from fireswarm.api.console.visit import WebConsole
from fireswarm.client import Swarm
from fireswarm.contracts.ports import SERVER_TIME, Create, Merge, Query
from fireswarm.redaction import environment_redactor
from fireswarm.runs.sinks.pages import PAGE_EVENTS
from fireswarm.storage.documents.build import run_identity
from fireswarm.storage.documents.paths import TASKS, run_path, task_path
from fireswarm.swarm.parts import SwarmParts

TASKS_STORED, OBJECTIVE_TASKS, RUN_EVENTS = 10_000, 500, 20_000
LOADS = 7
BUSY_SECONDS, BILLED_SECONDS, CHANGES_A_MINUTE = 60.0, 300.0, 100
BATCH = 100


async def fill(parts: SwarmParts) -> tuple[str, str]:
    """Store the tasks and the run; returns the ids of the objective's first task and of the run."""
    await submit_noops(parts, TASKS_STORED)
    found = await parts.store.query(Query(TASKS, limit=OBJECTIVE_TASKS))
    root = found[0].id
    below = {"parent_task_id": root, "trace": {"chain_id": root, "step": 1}}
    for start in range(1, OBJECTIVE_TASKS, BATCH):
        await parts.store.commit([Merge(item.path, below) for item in found[start : start + BATCH]])
    task = await Swarm(parts).get(root)
    run, now = run_path(task.run_id(1)), parts.clock.now()
    fields = run_identity(task, 1, "scout-1", now) | {"status": "progress", "events": [], "journal_pages": 1}
    await parts.store.commit([Create(run, fields)])
    event = {"ts": now, "type": "step_finished", "payload": {"step": "0/act:1.1", "result": {"text": "x" * 200}}}
    pages = [f"{run}/journal/{number:06d}" for number in range(1, RUN_EVENTS // PAGE_EVENTS + 1)]
    for start in range(0, len(pages), BATCH):
        content = {"session_hash": "bench", "events": [event] * PAGE_EVENTS}
        await parts.store.commit([Merge(path, content) for path in pages[start : start + BATCH]])
    return root, task.run_id(1)


async def timed(call: Callable[[], Awaitable[httpx2.Response]]) -> float:
    started = time.perf_counter()
    response = await call()
    assert response.status_code == httpx2.codes.OK, response.status_code
    return time.perf_counter() - started


async def watch_busy(
    parts: SwarmParts, console: WebConsole, client: httpx2.AsyncClient, task_id: str, seconds: float
) -> dict[str, float]:
    """Read the overview at each change, as an open page does, while tasks change; count what the store is asked."""
    updates: list[float] = []
    before = parts.store.usage.reads
    async with anyio.create_task_group() as group:
        group.start_soon(console.feed.follow)
        console.feed.open_page("bench")

        async def change() -> None:
            for _ in range(round(CHANGES_A_MINUTE * seconds / MINUTE)):
                await parts.store.commit([Merge(task_path(task_id), {"summary": "changed", "updated_at": SERVER_TIME})])
                await anyio.sleep(MINUTE / CHANGES_A_MINUTE)
            group.cancel_scope.cancel()

        group.start_soon(change)
        version = console.feed.version
        while True:
            version = await console.feed.changed_since(version)
            updates.append(await timed(lambda: client.get("/ui/")))
    minutes = seconds / MINUTE
    reads = parts.store.usage.reads - before
    return {
        "reads_a_minute": round(reads / minutes),
        "updates_a_minute": len(updates) / minutes,
        **percentiles(updates),
    }


async def main() -> None:
    """All of it."""
    async with benchmark_kit() as parts:
        root, run = await fill(parts)
        console = WebConsole(Swarm(parts), environment_redactor())
        transport = httpx2.ASGITransport(app=make_console(console))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            await client.get(console.link("", console.entrance.new_link()))
            screens = {
                "overview": "/", "inbox": "/inbox", "tasks": "/tasks", "search": "/tasks?text=no-op+99",
                "objective_of_500": f"/tasks/{root}", "run_of_20000": f"/runs/{run}", "store": "/store/agent_tasks",
            }  # fmt: skip
            seconds: dict[str, dict[str, float]] = {}
            for name, path in screens.items():
                console.feed.forget()
                reads = parts.store.usage.reads
                first = await timed(lambda path=path: client.get(f"/ui{path}"))
                reads = parts.store.usage.reads - reads
                again = [await timed(lambda path=path: client.get(f"/ui{path}")) for _ in range(LOADS)]
                seconds[name] = {"first": round(first, 3), "reads": reads, **percentiles(again)}
            busy = await watch_busy(parts, console, client, root, BUSY_SECONDS)
            console.feed.billed = True
            billed = await watch_busy(parts, console, client, root, BILLED_SECONDS)
    emit("console", pages=seconds, busy=busy, billed=billed, megabytes=round(psutil.Process().memory_info().rss / 1e6))


if __name__ == "__main__":
    anyio.run(main)
