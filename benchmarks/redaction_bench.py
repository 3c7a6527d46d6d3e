"""Redaction of this repository's documents and sources, and of a task's document."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import emit
from fireswarm.redaction import Redactor

ROOT = Path(__file__).parents[1]
RUNS = 3


def seconds(call: Callable[[Any], object], items: list[Any]) -> float:
    """Return the median time for all items."""
    times: list[float] = []
    for _ in range(RUNS):
        began = time.perf_counter()
        for item in items:
            call(item)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print the benchmark's line."""
    redactor = Redactor()
    documents = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]
    task = {"objective": "Report", "context": {"path": "/x", "text": documents[0][:1_500]}, "tokens": 5}
    emit(
        "redaction",
        documents_ns_per_char=round(seconds(redactor.text, documents) / sum(map(len, documents)) * 1e9),
        sources_ns_per_char=round(seconds(redactor.text, sources) / sum(map(len, sources)) * 1e9),
        task_document_us=round(seconds(redactor.value, [task] * 1_000) * 1e3),
    )


if __name__ == "__main__":
    main()
