"""A set of capabilities with 50 tools, resolved as for one turn: milliseconds, the first time and after."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import emit
from fireswarm.capabilities import Capability, CapabilityContext, Registry, registry, tool
from fireswarm.clocks import ServerClock
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.mind import Tool

TOOLS = 50
ROUNDS = 200
BUILT_IN = (
    "session_file_system",
    "current_time",
    "test_math",
    "test_weather",
    "web_fetch",
    "research",
)


def own_tools(config: Any, context: CapabilityContext) -> Sequence[Tool]:
    """Ten tools that are made anew for each agent, as those that work on its session are."""

    def one(text: str, number: int = 1, words: list[str] | None = None) -> str:
        """Does something with a text and a number."""
        return f"{context.session} {text} {number} {words}"

    return [tool(name=f"tool_{number}")(one) for number in range(10)]


def main() -> None:
    """Resolve the set again and again."""
    own = [Capability(f"own_{number}", "Own", "of one's own", tools=own_tools) for number in range(4)]
    every = Registry.of([*registry().known.values(), *own])
    uses = [CapabilityUse(id=name) for name in BUILT_IN]
    uses += [CapabilityUse(id=each.id, prefix=f"{each.id}_") for each in own]
    context = CapabilityContext("bench", Path(), ServerClock())
    taken: list[float] = []
    tools = 0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = every.resolve(uses, context)
        taken.append(1_000 * (time.perf_counter() - started))
        tools = len(found.tools)
    assert tools >= TOOLS
    emit(
        "capabilities",
        tools=tools,
        first_ms=round(taken[0], 3),
        median_ms=round(statistics.median(taken[1:]), 3),
        p95_ms=round(statistics.quantiles(taken[1:], n=20)[-1], 3),
        limit_ms=2,
    )


if __name__ == "__main__":
    main()
