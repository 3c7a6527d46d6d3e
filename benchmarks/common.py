"""What the benchmarks share: a swarm in a folder of its own, no-op tasks, one JSON line."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.settings import Settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.opening.embedded_store import INDEXES_FILE
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.worker.loop import Worker

SUBMITTERS = 50


@contextlib.asynccontextmanager
async def benchmark_kit(*, grpc: bool = False, **worker: Any) -> AsyncGenerator[SwarmParts]:
    """A swarm on a fresh store file: in this process, or over gRPC from another one."""
    with tempfile.TemporaryDirectory() as folder:
        unlimited = {"queue": {"max_queued": 0}}
        settings = Settings.model_validate({"root": folder, "worker": {"concurrency": 20, **worker}, **unlimited})
        async with contextlib.AsyncExitStack() as stack:
            if grpc:
                address = await stack.enter_async_context(served(Path(folder)))
                store = settings.store.model_copy(update={"uri": f"firelite://{address}"})
                settings = settings.model_copy(update={"store": store})
            swarm = await stack.enter_async_context(open_parts(settings))
            cards = {name: RoleCard(name=name, description=name, skills=("noop",)) for name in swarm.roles}
            yield replace(swarm, roles=cards)


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[str]:
    """Serve a store file from a process of its own; yields host:port."""
    indexes = str(packaged_path(INDEXES_FILE))
    command = [sys.executable, "-m", "fireswarm.cli", "store", "serve", "--port", "0"]
    async with await anyio.open_process(
        [*command, "--data", str(folder / "store.db"), "--indexes", indexes], stderr=None
    ) as process:
        assert process.stdout is not None
        printed = ""
        while "FIRESTORE_EMULATOR_HOST=" not in printed or not printed.endswith("\n"):
            printed += (await process.stdout.receive()).decode()
        try:
            yield printed.rpartition("=")[2].split()[0]  # a notice may follow the address
        finally:
            process.terminate()
            await process.wait()


async def submit_noops(swarm: SwarmParts, count: int, *, role: str = "scout", tag: str = "") -> float:
    """Submit *count* no-op tasks, fifty at a time; returns the seconds it took."""
    started = time.perf_counter()
    numbers = iter(range(count))

    async def submitter() -> None:
        for number in numbers:
            objective = f"no-op {tag}{number}"
            await swarm.board.submit(
                TaskSpec(objective=objective, assigned_to=role, session_hash="bench", skill="noop")
            )

    async with anyio.create_task_group() as group:
        for _ in range(SUBMITTERS):
            group.start_soon(submitter)
    return time.perf_counter() - started


@contextlib.asynccontextmanager
async def workers(swarm: SwarmParts, count: int = 1, role: str = "scout") -> AsyncGenerator[list[Worker]]:
    """Run workers inside the block."""
    running = [Worker(swarm, role, f"{role}-{number}") for number in range(count)]
    async with anyio.create_task_group() as group:
        for worker in running:
            group.start_soon(worker.run)
        try:
            yield running
        finally:
            for worker in running:
                worker.stop()


async def drained(running: Sequence[Worker], count: int) -> None:
    """Wait until the workers have settled *count* tasks between them."""
    while sum(worker.settled for worker in running) < count:
        await anyio.sleep(0.002)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return {"p50": round(statistics.median(ordered), 3), "p99": round(p99, 3), "max": round(ordered[-1], 3)}


def emit(name: str, **figures: Any) -> None:
    """Print the benchmark's one line."""
    print(json.dumps({"benchmark": name, **figures}))
