"""Features of every file at a moment of the history, from earlier commits only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

LEARNED = ("commits", "recent", "churn", "fixes", "authors", "lines", "complexity", "age", "idle", "is_test")
"""Features of the supervised route. Test distance is known only for today and would leak, so it is left out."""

MOST_FILES_A_FIX = 30
"""Maximum number of files of a fix; a larger fix says nothing about any single file."""

_DAY = 86_400.0


@dataclass
class FileHistory:
    """History of one file up to a moment; times in seconds since 1970."""

    commits: int = 0
    recent: float = 0.0
    churn: int = 0
    fixes: int = 0
    authors: int = 0
    first: float = 0.0
    last: float = 0.0


def histories_until(history: dict[str, Any], until: float) -> dict[str, FileHistory]:
    """Sum up the commits at or before *until*; a commit's weight in ``recent`` halves every quarter of the span."""
    commits = [commit for commit in history["commits"] if commit["time"] <= until]
    if not commits:
        return {}
    start = min(commit["time"] for commit in commits)
    half_life = max((until - start) / 4.0, _DAY)
    found: dict[str, FileHistory] = {}
    authors: dict[str, set[int]] = {}
    for commit in commits:
        decay = 0.5 ** ((until - commit["time"]) / half_life)
        for number, added, deleted in commit["files"]:
            path = history["paths"][number]
            file = found.setdefault(path, FileHistory(first=commit["time"]))
            file.commits += 1
            file.recent += decay
            file.churn += added + deleted
            file.fixes += int(bool(commit["fix"]))
            file.first = min(file.first, commit["time"])
            file.last = max(file.last, commit["time"])
            authors.setdefault(path, set()).add(commit["author"])
    for path, seen in authors.items():
        found[path].authors = len(seen)
    return found


def last_time(history: dict[str, Any]) -> float:
    """Return the latest commit time; after a rebase the last commit may be older."""
    return max(float(commit["time"]) for commit in history["commits"])


def learned_row(
    path: str, file: FileHistory | None, lines: int | None, complexity: int | None, at: float
) -> list[float]:
    """Return one row of :data:`LEARNED`: counts and times in days, all as ``ln(1 + x)``."""
    file = file or FileHistory(first=at, last=at)
    return [
        math.log1p(file.commits),
        math.log1p(file.recent),
        math.log1p(file.churn),
        math.log1p(file.fixes),
        math.log1p(file.authors),
        math.log1p(lines or 0),
        math.log1p(complexity or 0),
        math.log1p(max(0.0, at - file.first) / _DAY),
        math.log1p(max(0.0, at - file.last) / _DAY),
        float(looks_like_test(path)),
    ]


def fixed_between(history: dict[str, Any], after: float, until: float) -> set[str]:
    """Return the paths that a fix-like commit touched after *after* and no later than *until*."""
    found: set[str] = set()
    for commit in history["commits"]:
        if commit["fix"] and after < commit["time"] <= until and len(commit["files"]) <= MOST_FILES_A_FIX:
            found.update(history["paths"][number] for number, _, _ in commit["files"])
    return found


def looks_like_test(path: str) -> bool:
    """Return True if the name contains "test", which is the same at any moment of the history."""
    pure = PurePosixPath(path)
    named = pure.stem.startswith("test_") or pure.stem.endswith(("_test", ".test", ".spec"))
    return named or bool({"test", "tests", "__tests__"} & set(pure.parts[:-1]))


def scored_files(inventory: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the files to score: source code, or every text file if there is no code."""
    records: list[dict[str, Any]] = [record for record in inventory["files"] if record.get("kind") == "text"]
    return [record for record in records if "complexity" in record] or records


def percentile_ranks(values: Iterable[float]) -> list[float]:
    """Each value's mid-rank among all, from 0 to 1; equal values share a rank, and a constant column is 0.5."""
    numbers = list(values)
    if len(numbers) < 2:
        return [0.5] * len(numbers)
    order = sorted(range(len(numbers)), key=lambda index: numbers[index])
    ranks = [0.0] * len(numbers)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and numbers[order[end + 1]] == numbers[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2 / (len(numbers) - 1)
        start = end + 1
    return ranks
