"""Forecasting a number: ridge or boosted trees, split-conformal intervals, judged on held-out rows."""

from __future__ import annotations

import math
from typing import Any

from fireswarm import count_noun, format_percent

from .conformal import conformal_quantile, wilson
from .problem import Outcome, Problem, importance, rounded

BOOST_FROM_ROWS = 150
"""Number of training rows from which boosted trees are compared with the linear model."""

_POINTS_KEPT = 300


def forecast_number(problem: Problem) -> Outcome:
    """Fit, calibrate, judge, and forecast the open rows."""
    split = problem.split
    truth = problem.numbers
    name, model = _chosen(problem, split.train)
    residuals = [abs(a - b) for a, b in _pairs(truth, split.calibrate, _predict(model, problem, split.calibrate))]
    width = conformal_quantile(residuals, problem.level)
    exact = math.isfinite(width)
    width = width if exact else max(residuals)
    held = _predict(model, problem, split.held_out)
    pairs = _pairs(truth, split.held_out, held)
    inside = sum(abs(actual - predicted) <= width for actual, predicted in pairs)
    middle = sorted(truth[index] for index in split.train)[len(split.train) // 2]
    mean = sum(truth[index] for index in split.train) / len(split.train)
    evaluation: dict[str, Any] = {
        "held_out_rows": len(pairs),
        "mae": rounded(_mean(abs(a - b) for a, b in pairs)),
        "mae_of_median": rounded(_mean(abs(a - middle) for a, _ in pairs)),
        "rmse": rounded(_mean((a - b) ** 2 for a, b in pairs) ** 0.5),
        "rmse_of_mean": rounded(_mean((a - mean) ** 2 for a, _ in pairs) ** 0.5),
        "interval_level": problem.level,
        "interval_half_width": rounded(width),
        "coverage": rounded(inside / len(pairs)),
        "coverage_range": [rounded(edge) for edge in wilson(inside, len(pairs))],
    }
    rows = count_noun(len(residuals), "calibration row")
    notes = [] if exact else [f"{rows} are too few for {format_percent(problem.level)} intervals."]
    if evaluation["mae"] >= evaluation["mae_of_median"]:
        notes.append("On held-out rows the model does not beat the median.")
    points = [
        {"actual": rounded(a), "forecast": rounded(b), "low": rounded(b - width), "high": rounded(b + width)}
        for a, b in pairs[:_POINTS_KEPT]
    ]
    score = importance(model, problem, split.held_out, truth, "neg_mean_absolute_error")
    return Outcome(name, evaluation, _open_rows(problem, name, width), points, score, notes)


def _open_rows(problem: Problem, name: str, width: float) -> list[dict[str, Any]]:
    """Forecasts for rows without an answer: the chosen model refitted on all but the calibration rows."""
    if not problem.open_rows:
        return []
    known = sorted(problem.split.train + problem.split.held_out)
    model = _fitted(name, problem, known)
    residuals = [
        abs(a - b)
        for a, b in _pairs(problem.numbers, problem.split.calibrate, _predict(model, problem, problem.split.calibrate))
    ]
    refitted = conformal_quantile(residuals, problem.level)
    width = refitted if math.isfinite(refitted) else width
    found: list[dict[str, Any]] = []
    for row, value in zip(problem.open_rows, model.predict(problem.open_matrix), strict=True):
        low, high = float(value) - width, float(value) + width
        found.append({"row": row + 1, "forecast": rounded(float(value)), "low": rounded(low), "high": rounded(high)})
    return found


def _chosen(problem: Problem, rows: list[int]) -> tuple[str, Any]:
    """The better of the candidates by cross-validated absolute error on the training rows."""
    from sklearn.model_selection import cross_val_score

    names = ["ridge regression"] + (["boosted trees"] if len(rows) >= BOOST_FROM_ROWS else [])
    if len(names) == 1:
        return names[0], _fitted(names[0], problem, rows)
    data = problem.at(rows)
    answers = [problem.numbers[index] for index in rows]
    errors = {
        name: -float(cross_val_score(_model(name), data, answers, cv=5, scoring="neg_mean_absolute_error").mean())
        for name in names
    }
    best = min(names, key=lambda name: (errors[name], name))
    return best, _fitted(best, problem, rows)


def _model(name: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "boosted trees":
        return HistGradientBoostingRegressor(random_state=0, max_iter=100)
    return make_pipeline(StandardScaler(), RidgeCV(alphas=(0.1, 1.0, 10.0, 100.0)))


def _fitted(name: str, problem: Problem, rows: list[int]) -> Any:
    return _model(name).fit(problem.at(rows), [problem.numbers[index] for index in rows])


def _predict(model: Any, problem: Problem, rows: list[int]) -> list[float]:
    return [float(value) for value in model.predict(problem.at(rows))]


def _pairs(truth: list[float], rows: list[int], predicted: list[float]) -> list[tuple[float, float]]:
    return [(truth[index], value) for index, value in zip(rows, predicted, strict=True)]


def _mean(values: Any) -> float:
    collected = list(values)
    return sum(collected) / len(collected)
