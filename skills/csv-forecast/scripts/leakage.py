"""Columns that reveal the target: known only after it, or the target under another name."""

from __future__ import annotations

from collections import Counter, defaultdict

from fireswarm import format_percent

from .columns import Column, date_of, number_of
from .table import Table

TOO_GOOD = 0.98
"""Rank correlation or purity that a single column does not reach in data without leakage."""

LEAST_ROWS = 20
"""Minimum labelled rows: among fewer, a column may determine the target by chance."""


def leaks(table: Table, columns: list[Column], rows: list[int], answers: list[str] | list[float]) -> list[str]:
    """Name every feature that alone (almost) determines the answer on the labelled *rows*."""
    found: list[str] = []
    if len(rows) < LEAST_ROWS:
        return found
    for column in columns:
        cells = table.column(column.name)
        seen = [cells[row] for row in rows]
        strength = _numeric(column, seen, answers) if column.kind in {"number", "date"} else _purity(seen, answers)
        if strength >= TOO_GOOD:
            found.append(
                f"{column.name} alone almost determines the target ({format_percent(strength)}): if it is only known "
                f"afterwards, leave it out with context.exclude"
            )
    return found


def _numeric(column: Column, cells: list[str], answers: list[str] | list[float]) -> float:
    parse = number_of if column.kind == "number" else date_of
    pairs = [(parse(cell), answer) for cell, answer in zip(cells, answers, strict=True)]
    known = [(value, answer) for value, answer in pairs if value is not None]
    if len(known) < 10:
        return 0.0
    values = [value for value, _ in known]
    targets = [answer for _, answer in known]
    if isinstance(targets[0], float):
        return abs(_correlation(_ranks(values), _ranks([float(answer) for answer in targets])))
    return max(
        _separation(values, [answer == kind for answer in targets]) for kind in sorted({str(t) for t in targets})
    )


def _separation(values: list[float], labels: list[bool]) -> float:
    """Return the distance of the AUC from 0.5, scaled to 0 to 1."""
    positives = sum(labels)
    negatives = len(labels) - positives
    if positives < 3 or negatives < 3:
        return 0.0
    total = sum(rank for rank, label in zip(_ranks(values), labels, strict=True) if label)
    return abs(2 * (total - positives * (positives + 1) / 2) / (positives * negatives) - 1)


def _purity(cells: list[str], answers: list[str] | list[float]) -> float:
    """Return the share of rows that their level's most frequent answer explains, beyond the overall most frequent."""
    if isinstance(answers[0], float):
        return 0.0
    groups: dict[str, Counter[str | float]] = defaultdict(Counter)
    for cell, answer in zip(cells, answers, strict=True):
        groups[cell.strip()][answer] += 1
    repeated = {level: counts for level, counts in groups.items() if sum(counts.values()) >= 3}
    total = sum(sum(counts.values()) for counts in repeated.values())
    if total < 10 or len(repeated) < 2:
        return 0.0
    right = sum(max(counts.values()) for counts in repeated.values())
    base = max(Counter(answers).values()) / len(answers)
    return max(0.0, (right / total - base) / (1 - base)) if base < 1 else 0.0


def _ranks(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def _correlation(one: list[float], other: list[float]) -> float:
    middle_one, middle_other = sum(one) / len(one), sum(other) / len(other)
    cross = sum((a - middle_one) * (b - middle_other) for a, b in zip(one, other, strict=True))
    spread = sum((a - middle_one) ** 2 for a in one) * sum((b - middle_other) ** 2 for b in other)
    return cross / spread**0.5 if spread else 0.0
