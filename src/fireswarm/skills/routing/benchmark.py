"""Measure quality and speed of a router on labelled prompts."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fireswarm.errors import InvalidInput
from fireswarm.skills.routing.router import TOP_K

Ranker = Callable[[str], Sequence[str]]
"""Returns the names of skills for a prompt, best first."""


class Labelled(NamedTuple):
    """A prompt and the skill that it should find."""

    skill: str
    query: str


def read_labelled(path: Path) -> list[Labelled]:
    """Read ``[{"skill": name, "query": text}]``. Raises InvalidInput with file and entry. Other keys are ignored."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, list) or not content:
        raise InvalidInput(f'{path} must be a list of {{"skill": name, "query": text}} with at least one entry')
    prompts: list[Labelled] = []
    for number, entry in enumerate(content, start=1):
        skill, query = (entry.get("skill"), entry.get("query")) if isinstance(entry, dict) else (None, None)
        if not (isinstance(skill, str) and isinstance(query, str)):
            raise InvalidInput(f"{path}: entry {number} must have skill and query as text")
        prompts.append(Labelled(skill, query))
    return prompts


def measure(rank: Ranker, prompts: Iterable[Labelled], *, top_k: int = TOP_K) -> dict[str, Any]:
    """Return the shares of prompts whose skill is ranked first and in the *top_k*, and milliseconds per prompt."""
    listed = list(prompts)
    first = recalled = 0
    milliseconds: list[float] = []
    for prompt in listed:
        started = time.perf_counter()
        names = list(rank(prompt.query))[:top_k]
        milliseconds.append((time.perf_counter() - started) * 1_000)
        first += names[:1] == [prompt.skill]
        recalled += prompt.skill in names
    ordered = sorted(milliseconds)
    return {
        "prompts": len(listed),
        "top1": round(first / max(1, len(listed)), 4),
        f"recall_at_{top_k}": round(recalled / max(1, len(listed)), 4),
        "latency_ms": {
            "p50": round(statistics.median(ordered), 3) if ordered else 0.0,
            "p99": round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 3) if ordered else 0.0,
        },
    }
