"""The supervised route: train on one period of history, evaluate on the next, then forecast from today."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from fireswarm import count_noun, format_score

from .features import LEARNED, FileHistory, fixed_between, histories_until, last_time, learned_row
from .metrics import auc, brier, calibration, quantile
from .ranked import BAND, TOP, Scored, rounded

LEAST_FILES, LEAST_EACH_WAY, LEAST_HELD_OUT = 40, 8, 5
"""With fewer files, or fewer fixed and unfixed ones, ten coefficients would fit noise."""

USEFUL_AUC = 0.6
"""Minimum held-out AUC of a usable model; 0.5 is chance."""

REGULARISATION = 0.5
REFITS = 100


@dataclass(frozen=True)
class Stretch:
    """Files at a moment, and which of them a fix touched before the next moment."""

    paths: list[str]
    rows: list[list[float]]
    labels: list[bool]


@dataclass(frozen=True)
class Verdict:
    """Result of the supervised route: usable or not, the reason, and the scores on the held-out period."""

    usable: bool
    reason: str
    evaluation: dict[str, Any]
    train: Stretch | None = None
    held_out: Stretch | None = None


def stretch(history: dict[str, Any], split: dict[str, Any], until: float) -> Stretch:
    """Return the code files at the snapshot *split* with features at that time and labels up to *until*."""
    histories = histories_until(history, split["time"])
    fixed = fixed_between(history, split["time"], until)
    paths = sorted(path for path, measured in split["files"].items() if measured[1] is not None)
    rows = [_row_at(path, histories, split) for path in paths]
    return Stretch(paths, rows, [path in fixed for path in paths])


def _row_at(path: str, histories: dict[str, FileHistory], split: dict[str, Any]) -> list[float]:
    lines, complexity = split["files"][path]
    return learned_row(path, histories.get(path), lines, complexity, split["time"])


def judge(history: dict[str, Any] | None) -> Verdict:
    """Train on the first stretch, evaluate on the second, and decide."""
    if history is None:
        return Verdict(False, "there is no git history", {})
    if len(history.get("splits", ())) < 2:
        return Verdict(False, "the history is too short to be split into a training and an evaluation part", {})
    first, second = history["splits"][:2]
    end = last_time(history)
    train = stretch(history, first, second["time"])
    held_out = stretch(history, second, end)
    shortage = _shortage(train, held_out)
    if shortage:
        return Verdict(False, shortage, {}, train, held_out)
    forecast = fit(train).probabilities(held_out.rows)
    rate = sum(train.labels) / len(train.labels)
    area = auc(forecast, held_out.labels) or 0.0
    by_commits = auc([row[0] for row in held_out.rows], held_out.labels) or 0.0
    error, naive = brier(forecast, held_out.labels), brier([rate] * len(forecast), held_out.labels)
    evaluation = {
        "held_out": "later in time: trained up to the second cut, judged on the commits after it",
        "train_files": len(train.paths),
        "train_fixed": sum(train.labels),
        "held_out_files": len(held_out.paths),
        "held_out_fixed": sum(held_out.labels),
        "auc": round(area, 4),
        "auc_by_commit_count": round(by_commits, 4),
        "brier": round(error, 4),
        "brier_of_base_rate": round(naive, 4),
        "calibration": calibration(forecast, held_out.labels),
    }
    if area < USEFUL_AUC:
        reason = (
            f"on held-out history the model reached an AUC of {format_score(area)}, below the required {USEFUL_AUC}"
        )
        return Verdict(False, reason, evaluation, train, held_out)
    return Verdict(True, f"held-out AUC {format_score(area)}", evaluation, train, held_out)


class Fitted:
    """A regularised logistic regression with its scaling."""

    def __init__(self, scaler: Any, model: Any) -> None:
        self._scaler, self._model = scaler, model

    def probabilities(self, rows: list[list[float]]) -> list[float]:
        """Probability of a fix for each row."""
        return [float(pair[1]) for pair in self._model.predict_proba(self._scaler.transform(rows))]

    def contributions(self, row: list[float]) -> list[tuple[float, str]]:
        """Return the contribution of each feature to the log odds, largest first."""
        scaled = self._scaler.transform([row])[0]
        parts = [
            (float(weight * value), name)
            for weight, value, name in zip(self._model.coef_[0], scaled, LEARNED, strict=True)
        ]
        return sorted(parts, key=lambda part: (-part[0], part[1]))

    def coefficients(self) -> dict[str, float]:
        """Standardised coefficients by feature."""
        return {name: round(float(weight), 4) for name, weight in zip(LEARNED, self._model.coef_[0], strict=True)}


def one_thread() -> Any:
    """Return a context in which linear algebra uses one thread: many small fits are slower with several."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def fit(data: Stretch) -> Fitted:
    """Fit on one stretch: standardised features, L2-regularised logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler: Any = StandardScaler().fit(data.rows)
    model: Any = LogisticRegression(C=REGULARISATION, max_iter=500)
    model.fit(scaler.transform(data.rows), data.labels)
    return Fitted(scaler, model)


def forecast(
    verdict: Verdict, records: list[dict[str, Any]], history: dict[str, Any], seed: int
) -> tuple[list[Scored], Fitted]:
    """Refit on both periods and score today's files; bands from refits on resampled files."""
    if verdict.train is None or verdict.held_out is None:
        raise ValueError("a verdict without data cannot forecast")
    both = Stretch(
        verdict.train.paths + verdict.held_out.paths,
        verdict.train.rows + verdict.held_out.rows,
        verdict.train.labels + verdict.held_out.labels,
    )
    now = last_time(history)
    histories = histories_until(history, now)
    rows = [
        learned_row(record["path"], histories.get(record["path"]), record.get("lines"), record.get("complexity"), now)
        for record in records
    ]
    fitted = fit(both)
    scores = fitted.probabilities(rows)
    samples = _refits(both, rows, seed)
    return _scored(records, rows, scores, samples, fitted), fitted


def _refits(data: Stretch, rows: list[list[float]], seed: int) -> list[list[float]]:
    """Return probabilities of *rows* from models refitted on resampled files; a file keeps both its rows."""
    generator = random.Random(seed)
    by_path: dict[str, list[int]] = {}
    for index, path in enumerate(data.paths):
        by_path.setdefault(path, []).append(index)
    paths = sorted(by_path)
    samples: list[list[float]] = []
    for _ in range(REFITS):
        drawn = [index for path in generator.choices(paths, k=len(paths)) for index in by_path[path]]
        labels = [data.labels[index] for index in drawn]
        if any(labels) and not all(labels):
            sample = Stretch([data.paths[index] for index in drawn], [data.rows[index] for index in drawn], labels)
            samples.append(fit(sample).probabilities(rows))
    return samples


def _scored(
    records: list[dict[str, Any]],
    rows: list[list[float]],
    scores: list[float],
    samples: list[list[float]],
    fitted: Fitted,
) -> list[Scored]:
    top = [0] * len(records)
    for sample in samples:
        for index in sorted(range(len(records)), key=lambda index: (-sample[index], records[index]["path"]))[:TOP]:
            top[index] += 1
    found: list[Scored] = []
    for index, record in enumerate(records):
        ordered = sorted([*(sample[index] for sample in samples), scores[index]])
        low = min(quantile(ordered, BAND[0]), scores[index])
        high = max(quantile(ordered, BAND[1]), scores[index])
        parts = [(part, name) for part, name in fitted.contributions(rows[index])[:3] if part > 0]
        why = tuple(f"{name.replace('_', ' ')} adds {format_score(part)} to the log odds" for part, name in parts)
        share = top[index] / len(samples) if samples else 0.0
        found.append(rounded(record["path"], scores[index], (low, high), share, why))
    return sorted(found, key=lambda file: (-file.score, file.path))


def _shortage(train: Stretch, held_out: Stretch) -> str:
    """Return the reason why the data are insufficient for learning, or ""."""
    fixed, checked = sum(train.labels), sum(held_out.labels)
    if len(train.paths) < LEAST_FILES:
        existed = f"only {count_noun(len(train.paths), 'code file')} existed" if train.paths else "no code file existed"
        return f"{existed} at the first cut, {LEAST_FILES} are needed"
    if min(fixed, len(train.labels) - fixed) < LEAST_EACH_WAY:
        return (
            f"{fixed} of {count_noun(len(train.labels), 'file')} were fixed between the cuts; {LEAST_EACH_WAY} fixed "
            f"and {LEAST_EACH_WAY} unfixed ones are needed"
        )
    if min(checked, len(held_out.labels) - checked) < LEAST_HELD_OUT:
        held = count_noun(len(held_out.labels), "file")
        return f"{checked} of {held} were fixed after the second cut, {LEAST_HELD_OUT} are needed"
    return ""
