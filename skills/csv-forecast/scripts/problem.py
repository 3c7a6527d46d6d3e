"""Types shared by both kinds of forecast: the prepared problem, its outcome, and feature importance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .split import Split

_IMPORTANT = 10


@dataclass(frozen=True)
class Problem:
    """Numbers for the labelled rows, their answers, the split, and the rows to forecast."""

    matrix: Any
    answers: list[float] | list[str]
    split: Split
    names: list[str]
    open_rows: list[int]
    open_matrix: Any
    level: float
    seed: int

    @property
    def numbers(self) -> list[float]:
        """The answers of a regression."""
        return [float(answer) for answer in self.answers]

    @property
    def labels(self) -> list[str]:
        """The answers of a classification."""
        return [str(answer) for answer in self.answers]

    def at(self, rows: list[int]) -> Any:
        """The matrix of some labelled rows."""
        return self.matrix[rows]


@dataclass(frozen=True)
class Outcome:
    """A model's name, its held-out figures, forecasts of open rows, points to draw, and feature importance."""

    method: str
    evaluation: dict[str, Any]
    forecasts: list[dict[str, Any]]
    points: list[dict[str, Any]]
    importance: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list[str])


def rounded(value: float) -> float:
    """Round to six significant digits: the last bits of a float differ between machines."""
    return float(f"{value:.6g}")


def importance(model: Any, problem: Problem, rows: list[int], truth: list[Any], scoring: str) -> list[dict[str, Any]]:
    """Return the loss of the held-out score when a column is shuffled (five times), largest first."""
    from sklearn.inspection import permutation_importance

    expected = [truth[index] for index in rows]
    result: Any = permutation_importance(
        model, problem.at(rows), expected, scoring=scoring, n_repeats=5, random_state=problem.seed % 2**31
    )
    measured = zip(problem.names, map(float, result.importances_mean), map(float, result.importances_std), strict=True)
    ranked = sorted(measured, key=lambda entry: (-entry[1], entry[0]))[:_IMPORTANT]
    return [{"feature": name, "loss": rounded(mean), "spread": rounded(spread)} for name, mean, spread in ranked]
