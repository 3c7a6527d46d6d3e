"""What a claim costs as the queue grows from 100 to 100,000 tasks: milliseconds a claim of one task."""

from __future__ import annotations

import time

import anyio

from benchmarks.common import benchmark_kit, emit, percentiles, submit_noops
from fireswarm.processes.startup import loop_options

SIZES = (100, 1_000, 10_000, 100_000)
CLAIMS = 60


async def main() -> None:
    """Grow one queue, claiming at each size; what is claimed stays claimed."""
    figures: dict[str, dict[str, float]] = {}
    async with benchmark_kit() as swarm:
        claimer = swarm.board.claimer("scout", "bench")
        size = 0
        for target in SIZES:
            await submit_noops(swarm, target - size, tag=f"{target}-")
            size = target
            samples: list[float] = []
            for _ in range(CLAIMS):
                started = time.perf_counter()
                held = await claimer.claim(1)
                samples.append(1_000 * (time.perf_counter() - started))
                assert len(held) == 1
            figures[str(target)] = percentiles(samples)
    growth = figures[str(SIZES[-1])]["p50"] / figures[str(SIZES[0])]["p50"]
    emit("claim_cost_ms", claims=CLAIMS, growth=round(growth, 2), **figures)


if __name__ == "__main__":
    anyio.run(main, backend_options=loop_options())
