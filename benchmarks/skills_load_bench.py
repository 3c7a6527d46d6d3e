"""Loading 20,000 skills: cold, again when nothing changed, and again when one file did."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.common import emit
from benchmarks.routing import distractors
from fireswarm.skills.packs.catalog import load_catalog

SKILLS = 20_000
RUNS = 3


def seconds(folder: Path, cache: Path) -> float:
    """How long one start takes; the catalog has to be whole."""
    started = time.perf_counter()
    catalog = load_catalog([folder], cache=cache)
    took = time.perf_counter() - started
    assert len(catalog.skills) == SKILLS
    return took


def main() -> None:
    """Print the benchmark's line."""
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "skills", Path(name) / "cache.json"
        distractors.write(folder, SKILLS)
        cold: list[float] = []
        for _ in range(RUNS):
            cache.unlink(missing_ok=True)
            cold.append(seconds(folder, cache))
        unchanged = [seconds(folder, cache) for _ in range(RUNS)]
        first = next(folder.glob("*/SKILL.md"))
        first.write_text(first.read_text(encoding="utf-8") + "\nChanged.\n", encoding="utf-8")
        changed = seconds(folder, cache)
        emit(
            "skills_load",
            skills=SKILLS,
            cold_seconds=round(min(cold), 3),
            unchanged_seconds=round(min(unchanged), 3),
            one_changed_seconds=round(changed, 3),
            cache_mb=round(cache.stat().st_size / 1e6, 1),
        )


if __name__ == "__main__":
    main()
