"""The session file system: 1,000 small files written, listed and searched; seconds and billed operations of each."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from benchmarks.common import benchmark_kit, emit
from fireswarm.capabilities import CapabilityContext, registry
from fireswarm.contracts.ports import Store
from fireswarm.contracts.skills.capability import CapabilityUse

FILES = 1_000
FOLDERS = 10
MARKED_EVERY = 100


async def measured(store: Store, work: Callable[[], Awaitable[Any]]) -> tuple[dict[str, Any], Any]:
    """Seconds and billed operations of a piece of work, and what it returned."""
    before, started = store.usage.copy(), time.perf_counter()
    result = await work()
    used = store.usage.minus(before)
    seconds = round(time.perf_counter() - started, 3)
    return {"seconds": seconds, "reads": used.reads, "writes": used.writes}, result


async def main() -> None:
    """Write the files one after the other, as an agent does, and look for every hundredth."""
    async with benchmark_kit() as swarm:
        context = CapabilityContext("bench", Path(), swarm.clock, swarm.store)
        tools = registry().resolve([CapabilityUse(id="session_file_system")], context).tools

        async def write() -> None:
            for number in range(FILES):
                mark = "needle" if number % MARKED_EVERY == 0 else "hay"
                content = f"file {number}\n" + f"{mark} in a line of text\n" * 10
                path = f"/folder-{number % FOLDERS}/file-{number}.txt"
                await tools["write_file"].run({"path": path, "content": content})

        written, _ = await measured(swarm.store, write)
        grepped, found = await measured(swarm.store, lambda: tools["grep_files"].run({"pattern": r"^ne+dle\b"}))
        again, _ = await measured(swarm.store, lambda: tools["grep_files"].run({"pattern": r"^ne+dle\b"}))
        listed, entries = await measured(swarm.store, lambda: tools["list_directory"].run({}))
    assert found["match_count"] == 10 * FILES // MARKED_EVERY
    assert entries["count"] == FOLDERS
    emit("session_files", files=FILES, write=written, grep=grepped, grep_again=again, list_root=listed)


if __name__ == "__main__":
    anyio.run(main)
