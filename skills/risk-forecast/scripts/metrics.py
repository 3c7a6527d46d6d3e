"""Quality of a forecast: AUC, Brier score and a calibration table, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .features import percentile_ranks


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Return the probability that a positive outranks a negative, ties counting half; None if one kind is missing."""
    positives = sum(labels)
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    ranks = [rank * (len(labels) - 1) + 1 for rank in percentile_ranks(scores)]
    total = sum(rank for rank, label in zip(ranks, labels, strict=True) if label)
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def brier(probabilities: Sequence[float], labels: Sequence[bool]) -> float:
    """Mean squared difference between probability and outcome; 0 is perfect."""
    pairs = zip(probabilities, labels, strict=True)
    return sum((probability - label) ** 2 for probability, label in pairs) / len(labels)


def calibration(probabilities: Sequence[float], labels: Sequence[bool], bins: int = 5) -> dict[str, Any]:
    """Compare forecast and outcome in *bins* of equal count; returns also their weighted mean gap (ECE)."""
    order = sorted(range(len(labels)), key=lambda index: (probabilities[index], index))
    table: list[dict[str, Any]] = []
    gap = 0.0
    for number in range(bins):
        members = order[len(order) * number // bins : len(order) * (number + 1) // bins]
        if not members:
            continue
        forecast = sum(probabilities[index] for index in members) / len(members)
        outcome = sum(labels[index] for index in members) / len(members)
        gap += abs(forecast - outcome) * len(members) / len(order)
        table.append({"n": len(members), "forecast": round(forecast, 4), "outcome": round(outcome, 4)})
    return {"bins": table, "expected_calibration_error": round(gap, 4)}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The *share* quantile of ascending numbers, interpolated linearly."""
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
