"""Forecasting a class: calibrated probabilities, conformal sets, judged on held-out rows."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

from fireswarm import count_noun, format_percent

from .conformal import conformal_quantile, wilson
from .problem import Outcome, Problem, importance, rounded

BOOST_FROM_ROWS = 150
LEAST_A_CLASS = 4
"""Number of training rows of a class below which its probabilities are not calibrated by cross-validation."""

_FLOOR = 1e-6
_RESAMPLES = 200
_POINTS_KEPT = 300


def forecast_class(problem: Problem) -> Outcome:
    """Fit, calibrate, judge, and forecast the open rows."""
    split, labels = problem.split, problem.labels
    name, model = _chosen(problem, split.train)
    classes = [str(kind) for kind in model.classes_]
    scores = [1 - p.get(labels[index], 0.0) for index, p in _each(model, problem, split.calibrate, classes)]
    bar = conformal_quantile(scores, problem.level)
    held = _each(model, problem, split.held_out, classes)
    truth = [labels[index] for index in split.held_out]
    probabilities = [p for _, p in held]
    base = {kind: count / len(split.train) for kind, count in Counter(labels[i] for i in split.train).items()}
    sets = [_set(p, bar) for p in probabilities]
    covered = sum(actual in likely for likely, actual in zip(sets, truth, strict=True))
    sizes = [len(likely) for likely in sets]
    evaluation: dict[str, Any] = {
        "held_out_rows": len(truth),
        "classes": dict(sorted(Counter(labels).items())),
        **_figures(probabilities, truth, classes, base),
        "ranges_95": _ranges(probabilities, truth, classes, problem.seed),
        "reliability": reliability(probabilities, truth, classes),
        "set_level": problem.level,
        "set_coverage": rounded(covered / len(truth)),
        "set_coverage_range": [rounded(edge) for edge in wilson(covered, len(truth))],
        "mean_set_size": rounded(sum(sizes) / len(sizes)),
    }
    notes: list[str] = []
    if math.isinf(bar):
        rows = count_noun(len(scores), "calibration row")
        notes.append(f"{rows} are too few for {format_percent(problem.level)} sets: each set contains every class.")
    if evaluation["log_loss"] >= evaluation["log_loss_of_base_rate"]:
        notes.append("On held-out rows the model does not beat the class frequencies.")
    if "calibrated" not in name:
        notes.append("A class has too few rows to calibrate by cross-validation: probabilities come from the model.")
    points = [
        {"actual": actual, "probability": {kind: rounded(p[kind]) for kind in classes}}
        for p, actual in list(zip(probabilities, truth, strict=True))[:_POINTS_KEPT]
    ]
    weights = importance(model, problem, split.held_out, labels, "neg_log_loss")
    return Outcome(name, evaluation, _open_rows(problem, name), points, weights, notes)


def brier(probabilities: list[dict[str, float]], truth: list[str], classes: list[str]) -> float:
    """Mean squared error of the probabilities: of the second class if there are two, otherwise summed over classes."""
    kinds = classes[1:] if len(classes) == 2 else classes
    total = sum(
        (p.get(kind, 0.0) - float(actual == kind)) ** 2
        for p, actual in zip(probabilities, truth, strict=True)
        for kind in kinds
    )
    return total / len(truth)


def log_loss(probabilities: list[dict[str, float]], truth: list[str]) -> float:
    """Mean negative logarithm of the probability of the true class."""
    pairs = zip(probabilities, truth, strict=True)
    return sum(-math.log(max(_FLOOR, p.get(actual, 0.0))) for p, actual in pairs) / len(truth)


def reliability(probabilities: list[dict[str, float]], truth: list[str], classes: list[str]) -> dict[str, Any]:
    """Compare forecasts with outcomes in bins of equal count: for the second of two classes, or the likeliest class."""
    points: list[tuple[float, bool]] = []
    for p, actual in zip(probabilities, truth, strict=True):
        kind = classes[1] if len(classes) == 2 else max(classes, key=lambda kind: (p[kind], kind))
        points.append((p[kind], actual == kind))
    points.sort()
    bins = max(2, min(8, len(points) // 10))
    table: list[dict[str, Any]] = []
    gap = 0.0
    for number in range(bins):
        members = points[len(points) * number // bins : len(points) * (number + 1) // bins]
        if members:
            forecast = sum(p for p, _ in members) / len(members)
            outcome = sum(hit for _, hit in members) / len(members)
            gap += abs(forecast - outcome) * len(members) / len(points)
            table.append({"n": len(members), "forecast": rounded(forecast), "outcome": rounded(outcome)})
    of = classes[1] if len(classes) == 2 else "the likeliest class"
    return {"of": of, "bins": table, "expected_calibration_error": rounded(gap)}


def _figures(
    probabilities: list[dict[str, float]], truth: list[str], classes: list[str], base: dict[str, float]
) -> dict[str, Any]:
    commonest = max(sorted(base), key=lambda kind: base[kind])
    likeliest = [max(classes, key=lambda kind: (p[kind], kind)) for p in probabilities]
    figures = {
        "accuracy": sum(a == b for a, b in zip(likeliest, truth, strict=True)) / len(truth),
        "accuracy_of_commonest": sum(actual == commonest for actual in truth) / len(truth),
        "brier": brier(probabilities, truth, classes),
        "brier_of_base_rate": brier([base] * len(truth), truth, classes),
        "log_loss": log_loss(probabilities, truth),
        "log_loss_of_base_rate": log_loss([base] * len(truth), truth),
    }
    return {name: rounded(value) for name, value in figures.items()}


def _ranges(
    probabilities: list[dict[str, float]], truth: list[str], classes: list[str], seed: int
) -> dict[str, list[float]]:
    """Bootstrap ranges of the held-out figures: their uncertainty from the choice of held-out rows."""
    generator = random.Random(seed)
    briers: list[float] = []
    losses: list[float] = []
    for _ in range(_RESAMPLES):
        drawn = generator.choices(range(len(truth)), k=len(truth))
        some = [probabilities[index] for index in drawn]
        answers = [truth[index] for index in drawn]
        briers.append(brier(some, answers, classes))
        losses.append(log_loss(some, answers))
    low, high = int(0.025 * _RESAMPLES), int(0.975 * _RESAMPLES) - 1
    return {
        "brier": [rounded(sorted(briers)[low]), rounded(sorted(briers)[high])],
        "log_loss": [rounded(sorted(losses)[low]), rounded(sorted(losses)[high])],
    }


def _open_rows(problem: Problem, name: str) -> list[dict[str, Any]]:
    """Forecasts for rows without an answer: the chosen model refitted on all but the calibration rows."""
    if not problem.open_rows:
        return []
    model = _fitted(name, problem, sorted(problem.split.train + problem.split.held_out))
    classes = [str(kind) for kind in model.classes_]
    scores = [
        1 - p.get(problem.labels[index], 0.0) for index, p in _each(model, problem, problem.split.calibrate, classes)
    ]
    bar = conformal_quantile(scores, problem.level)
    found: list[dict[str, Any]] = []
    for row, values in zip(problem.open_rows, model.predict_proba(problem.open_matrix), strict=True):
        p = dict(zip(classes, map(float, values), strict=True))
        best = max(classes, key=lambda kind: (p[kind], kind))
        shown = {kind: rounded(p[kind]) for kind in classes}
        found.append({"row": row + 1, "forecast": best, "probability": shown, "set": sorted(_set(p, bar))})
    return found


def _set(probability: dict[str, float], bar: float) -> list[str]:
    """Return every class above *bar*, and always the likeliest, so that no set is empty."""
    best = max(probability, key=lambda kind: (probability[kind], kind))
    return [kind for kind, p in probability.items() if 1 - p <= bar or kind == best]


def _each(model: Any, problem: Problem, rows: list[int], classes: list[str]) -> list[tuple[int, dict[str, float]]]:
    values = model.predict_proba(problem.at(rows))
    return [(row, dict(zip(classes, map(float, line), strict=True))) for row, line in zip(rows, values, strict=True)]


def _chosen(problem: Problem, rows: list[int]) -> tuple[str, Any]:
    """The better of the candidates by cross-validated log-loss on the training rows, then calibrated."""
    from sklearn.model_selection import cross_val_score

    labels = [problem.labels[index] for index in rows]
    least = min(Counter(labels).values())
    names = ["logistic regression"] + (["boosted trees"] if len(rows) >= BOOST_FROM_ROWS and least >= 5 else [])
    best = names[0]
    if len(names) > 1:
        data = problem.at(rows)
        losses = {
            name: -float(cross_val_score(_model(name), data, labels, cv=5, scoring="neg_log_loss").mean())
            for name in names
        }
        best = min(names, key=lambda name: (losses[name], name))
    full = f"calibrated {best}" if least >= LEAST_A_CLASS else best
    return full, _fitted(full, problem, rows)


def _model(name: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "boosted trees":
        return HistGradientBoostingClassifier(random_state=0, max_iter=80)
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.5, max_iter=1000))


def _fitted(name: str, problem: Problem, rows: list[int]) -> Any:
    """Fit by name; a calibrated one by sigmoid over four folds of the same rows."""
    from sklearn.calibration import CalibratedClassifierCV

    labels = [problem.labels[index] for index in rows]
    plain = name.removeprefix("calibrated ")
    model = CalibratedClassifierCV(_model(plain), method="sigmoid", cv=4) if plain != name else _model(plain)
    return model.fit(problem.at(rows), labels)
