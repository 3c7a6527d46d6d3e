"""The rank route: a weighted mean of percentile ranks, with bands from uncertain weights. Standard library only."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fireswarm import format_number, format_rank

from .features import FileHistory, percentile_ranks
from .metrics import quantile

WEIGHTS: Mapping[str, float] = {
    "recent": 0.22, "fixes": 0.20, "complexity": 0.18, "commits": 0.14, "lines": 0.10, "test_distance": 0.10,
    "authors": 0.06,
}  # fmt: skip
"""Prior weight of each feature: recent change and past fixes first, then complexity.

The weights are an opinion, so the band of each score comes from drawing other weights around them.
"""

LABELS: Mapping[str, str] = {
    "recent": "recent commits (weighted)", "fixes": "fixes", "complexity": "complexity", "commits": "commits",
    "lines": "lines", "test_distance": "steps from a test", "authors": "authors",
}  # fmt: skip

CONCENTRATION = 20.0
"""Concentration of the Dirichlet distribution of weights: at 20, a weight of 0.2 has a standard deviation of 0.09."""

BAND = (0.1, 0.9)
UNTESTED_DISTANCE = 5
MOST_DRAWS, LEAST_DRAWS, WORK = 500, 100, 400_000

TOP = 10


@dataclass(frozen=True)
class Scored:
    """A file's score from 0 to 1 with its band, and the share of draws in which it is among the first ten."""

    path: str
    score: float
    low: float
    high: float
    top_share: float
    why: tuple[str, ...]


def rounded(path: str, score: float, band: tuple[float, float], top_share: float, why: tuple[str, ...]) -> Scored:
    """Round a score to four decimals."""
    return Scored(path, round(score, 4), round(band[0], 4), round(band[1], 4), round(top_share, 3), why)


def table_of(
    records: Sequence[dict[str, Any]], histories: dict[str, FileHistory], *, tests_known: bool
) -> dict[str, list[float]]:
    """Return columns of raw values by feature, without features that are equal for all files."""
    seen = [histories.get(record["path"], FileHistory()) for record in records]
    columns: dict[str, list[float]] = {
        "recent": [file.recent for file in seen],
        "fixes": [float(file.fixes) for file in seen],
        "complexity": [float(record.get("complexity") or 0) for record in records],
        "commits": [float(file.commits) for file in seen],
        "lines": [float(record.get("lines") or 0) for record in records],
        "authors": [float(file.authors) for file in seen],
    }
    if tests_known:
        columns["test_distance"] = [_distance(record) for record in records]
    return {name: values for name, values in columns.items() if len(set(values)) > 1}


def score_ranks(
    records: Sequence[dict[str, Any]], columns: dict[str, list[float]], seed: int
) -> tuple[list[Scored], int]:
    """Score every file, highest first; returns also the number of weight draws for the bands.

    Without a feature in which the files differ there is nothing to rank: no scores.
    """
    names = [name for name in WEIGHTS if name in columns]
    ranks = [percentile_ranks(columns[name]) for name in names]
    count = len(records)
    if not names:
        return [], 0
    base = _normalised([WEIGHTS[name] for name in names])
    scores = _weighted(ranks, base, count)
    draws = max(LEAST_DRAWS, min(MOST_DRAWS, WORK // max(1, count)))
    drawn = [_weighted(ranks, weights, count) for weights in _dirichlet(base, draws, seed)]
    jackknifed = [
        _weighted(ranks, _without(base, left_out), count) for left_out in range(len(names) if len(names) > 1 else 0)
    ]
    top = [0] * count
    for sample in drawn:
        for index in sorted(range(count), key=lambda index: (-sample[index], records[index]["path"]))[:TOP]:
            top[index] += 1
    found: list[Scored] = []
    for index, record in enumerate(records):
        ordered = sorted(sample[index] for sample in drawn)
        spread = [sample[index] for sample in jackknifed] + [scores[index]]
        low = min(quantile(ordered, BAND[0]), *spread, scores[index])
        high = max(quantile(ordered, BAND[1]), *spread, scores[index])
        why = _reasons(index, names, ranks, columns)
        found.append(rounded(record["path"], scores[index], (low, high), top[index] / draws, why))
    return sorted(found, key=lambda file: (-file.score, file.path)), draws


def _distance(record: dict[str, Any]) -> float:
    """Return the steps to the nearest test: 0 for a test, five for a file that no test reaches."""
    if record.get("test"):
        return 0.0
    return float(min(record.get("test_distance", UNTESTED_DISTANCE), UNTESTED_DISTANCE))


def _reasons(
    index: int, names: list[str], ranks: list[list[float]], columns: dict[str, list[float]]
) -> tuple[str, ...]:
    """Return the three features that raise this file's score most, in words."""
    lifts = [(WEIGHTS[name] * (ranks[number][index] - 0.5), name, number) for number, name in enumerate(names)]
    lifts.sort(key=lambda lift: (-lift[0], lift[1]))
    return tuple(f"{LABELS[name]} {_place(columns[name], index)}" for lift, name, _ in lifts[:3] if lift > 0)


def _place(values: list[float], index: int) -> str:
    """Return a value with its rank among the files: a percentile of a few files would pretend precision."""
    place = 1 + sum(value > values[index] for value in values)
    equal = values.count(values[index]) - 1
    return f"{format_number(values[index])} ({format_rank(place, len(values), equal)})"


def _weighted(ranks: list[list[float]], weights: Sequence[float], count: int) -> list[float]:
    return [
        sum(weight * column[index] for weight, column in zip(weights, ranks, strict=True)) for index in range(count)
    ]


def _normalised(weights: Sequence[float]) -> list[float]:
    total = sum(weights)
    return [weight / total for weight in weights]


def _without(weights: Sequence[float], left_out: int) -> list[float]:
    return _normalised([0.0 if index == left_out else weight for index, weight in enumerate(weights)])


def _dirichlet(weights: Sequence[float], draws: int, seed: int) -> list[list[float]]:
    generator = random.Random(seed)
    concentration = CONCENTRATION
    return [
        _normalised([generator.gammavariate(concentration * weight, 1.0) for weight in weights]) for _ in range(draws)
    ]
