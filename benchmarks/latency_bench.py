"""From submit to start on an idle worker: milliseconds from before the submit call until the skill begins."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import anyio

from benchmarks.common import benchmark_kit, emit, percentiles, workers
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.processes.startup import loop_options

SAMPLES = 300
WARMUP = 20


async def measure(*, grpc: bool) -> dict[str, float]:
    """Submit one task at a time to a worker that has nothing else to do."""
    started: dict[str, float] = {}
    begun = anyio.Event()

    async def mark(request: SkillRequest) -> SkillResult:
        nonlocal begun
        started[request.objective] = time.perf_counter()
        begun.set()
        return SkillResult(summary="marked")

    samples: list[float] = []
    async with benchmark_kit(grpc=grpc) as swarm:
        swarm = replace(swarm, inline={**swarm.inline, "mark": mark})
        async with workers(swarm) as running:
            for number in range(SAMPLES + WARMUP):
                begun = anyio.Event()
                objective = f"task {number}"
                spec = TaskSpec(objective=objective, assigned_to="scout", session_hash="bench", skill="mark")
                await anyio.sleep(0.01)  # the worker is idle again, its listener open
                before = time.perf_counter()
                await swarm.board.submit(spec)
                await begun.wait()
                if number >= WARMUP:
                    samples.append(1_000 * (started[objective] - before))
            assert running
    return percentiles(samples)


async def main() -> None:
    """Both faces of the store."""
    figures: dict[str, Any] = {"embedded": await measure(grpc=False), "grpc": await measure(grpc=True)}
    emit("submit_to_start_ms", samples=SAMPLES, **figures)


if __name__ == "__main__":
    anyio.run(main, backend_options=loop_options())
