"""Forecast a column of a CSV file from the rows where it is known, with its held-out error."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

from fireswarm import (
    Artifact,
    Fact,
    Question,
    Signal,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    format_measured_share,
    format_number,
    format_percent,
    install_command,
)

from .columns import Column, Encoder, describe
from .leakage import leaks
from .problem import Outcome, Problem, rounded
from .split import seed_of, split_rows
from .table import BadTable, Table, table_at
from .target import LEAST_LABELLED, Target, choose_target, read_target

LEVEL = 0.8
SMALL_ROWS = 100
LEAST_FOR_BASELINE = 5
"""Minimum known answers of a forecast: the median or the shares of fewer only repeat them."""

NO_FORECAST = "none"
MOST_CLASSES = 30
MOST_WARNINGS = 40
MOST_SHOWN = 40
MOST_ALLOWED_CHARS = 20_000
SHOWN, WRITTEN = 20, 5_000
MISSING_EXTRA = f"scikit-learn is not installed; the extra `predict` installs it: {install_command('predict')}"


def run(request: SkillRequest) -> SkillResult:
    """Read, check, learn, judge, forecast."""
    given = request.answers.get("path") or request.context.get("csv") or request.context.get("path")
    if not given:
        ask = Question(name="path", description="Absolute path of the CSV file", type="path")
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="No CSV file was given.", questions=(ask,))
    try:
        table, path = table_at(str(given))
        name = choose_target(table, request.context, request.answers, request.objective)
        if name is None:
            return _ask_for_target(table, request.answers.get("target"))
        return _forecast(request, table, path, name)
    except BadTable as reason:
        return SkillResult.failure(str(reason))


def _ask_for_target(table: Table, wrong: Any) -> SkillResult:
    columns = ", ".join(table.header[:MOST_SHOWN])
    short = sum(map(len, table.header)) <= MOST_ALLOWED_CHARS
    ask = Question(
        name="target",
        description=f"Which column should be forecast? One of: {columns}",
        allowed={"enum": list(table.header)} if short else {},
    )
    width = count_noun(len(table.header), "column")
    summary = f"{table.name} has {width}, and the request does not say which one to forecast."
    if wrong:
        summary = f"{table.name} has no column {str(wrong)[:MOST_SHOWN]!r}."
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary=summary, questions=(ask,))


def _forecast(request: SkillRequest, table: Table, path: Path | None, name: str) -> SkillResult:
    columns = [describe(table, column) for column in table.header]
    own = columns[table.header.index(name)]
    target = read_target(table, name, own, request.context.get("task"))
    features = _features(table, columns, name, request.context.get("exclude"))
    warnings = _warnings(table, columns, features, target)
    outcome = _too_few(target) or _constant(target) or _baseline_only(target, features, warnings)
    if outcome is None:
        outcome = _learned(table, features, target, _level(request.context.get("level")))
    return _result(request, table, path, columns, features, target, outcome, warnings)


def _features(table: Table, columns: list[Column], target: str, exclude: Any) -> list[Column]:
    listed = [exclude] if isinstance(exclude, str) else list(exclude or ())
    unknown = [str(name) for name in listed if name not in table.header]
    if unknown:
        raise BadTable(f"context.exclude: {table.name} has no column {', '.join(unknown)}.")
    useful = {"number", "date", "category"}
    return [
        column for column in columns if column.kind in useful and column.name != target and column.name not in listed
    ]


def _warnings(table: Table, columns: list[Column], features: list[Column], target: Target) -> list[str]:
    found = [note for column in columns if column.name != target.name for note in column.notes]
    for column in columns:
        if column.kind in {"identifier", "constant", "empty"} and column.name != target.name:
            found.append(f"{column.name} was not used: {column.kind}.")
        elif column.missing > len(table.rows) / 2 and column.name != target.name:
            rows = count_noun(len(table.rows), "row")
            found.append(f"{column.name} is missing in {column.missing:,} of {rows}.")
    if LEAST_FOR_BASELINE <= len(target.labelled) < SMALL_ROWS:
        found.append(f"Only {count_noun(len(target.labelled), 'labelled row')}: every figure here is uncertain.")
    found = leaks(table, features, target.labelled, target.answers) + found
    return [*found[:MOST_WARNINGS], f"{len(found) - MOST_WARNINGS} more."] if len(found) > MOST_WARNINGS else found


def _level(given: Any) -> float:
    if given is None:
        return LEVEL
    if not isinstance(given, int | float) or not 0.5 <= given <= 0.99:
        raise BadTable(f"context.level is {given!r}; it must be a number from 0.5 to 0.99.")
    return float(given)


def _too_few(target: Target) -> Outcome | None:
    known = len(target.labelled)
    if known >= LEAST_FOR_BASELINE:
        return None
    note = (
        f"There is no forecast: {target.name} is known in {count_noun(known, 'row')}; {LEAST_FOR_BASELINE} are needed "
        f"for a baseline, {LEAST_LABELLED} for learning."
    )
    return Outcome(NO_FORECAST, {}, [], [], [], [note])


def _constant(target: Target) -> Outcome | None:
    if len(set(target.answers)) > 1:
        return None
    only = target.answers[0]
    shown = format_number(only) if isinstance(only, float) else repr(only)
    note = f"The target is {shown} in every labelled row: there is nothing to learn."
    forecasts = [{"row": row + 1, "forecast": only} for row in target.open_rows]
    return Outcome("constant", {}, forecasts, [], [], [note])


def _baseline_only(target: Target, features: list[Column], warnings: list[str]) -> Outcome | None:
    """Return a simple baseline and the reason if learning is impossible, otherwise None."""
    classes = Counter(target.answers)
    if importlib.util.find_spec("sklearn") is None:
        reason = MISSING_EXTRA
    elif len(target.labelled) < LEAST_LABELLED:
        rows = count_noun(len(target.labelled), "labelled row")
        reason = f"{rows} are too few to learn from; {LEAST_LABELLED} are needed."
    elif not features:
        reason = (
            "No column besides the target is usable: identifiers, constants and empty columns carry no information."
        )
    elif target.task == "classification" and len(classes) > MOST_CLASSES:
        reason = f"{target.name} has {count_noun(len(classes), 'value')}: it is a text or an identifier, not a class."
    elif target.task == "classification" and min(classes.values()) < 4:
        rare = min(classes, key=lambda kind: (classes[kind], str(kind)))
        rows = count_noun(classes[rare], "row")
        reason = f"The class {rare!r} has {rows}; 4 are needed for training, calibration and evaluation."
    else:
        return None
    warnings.append(f"Only a baseline is given. {reason}")
    return _baseline(target)


def _baseline(target: Target) -> Outcome:
    if target.task == "classification":
        counts = Counter(str(answer) for answer in target.answers)
        most = [kind for kind, _ in counts.most_common(MOST_CLASSES)]
        shares = {kind[:60]: rounded(counts[kind] / len(target.answers)) for kind in sorted(most)}
        best = max(shares, key=lambda kind: (shares[kind], kind))
        forecasts = [{"row": row + 1, "forecast": best, "probability": shares} for row in target.open_rows]
        return Outcome("class frequencies", {"classes": len(counts)}, forecasts, [], [])
    ordered = sorted(float(answer) for answer in target.answers)
    low, middle, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.5, 0.9))
    if len(ordered) < LEAST_LABELLED:  # too few for the lowest and highest tenth
        forecasts = [{"row": row + 1, "forecast": middle} for row in target.open_rows]
        return Outcome("median", {"median": middle}, forecasts, [], [])
    forecasts = [{"row": row + 1, "forecast": middle, "low": low, "high": high} for row in target.open_rows]
    return Outcome("median", {"p10": low, "median": middle, "p90": high}, forecasts, [], [])


def _learned(table: Table, features: list[Column], target: Target, level: float) -> Outcome:
    import numpy
    from threadpoolctl import threadpool_limits

    importlib.import_module("sklearn.ensemble")  # only libraries that are loaded already can be limited below
    from .classification import forecast_class
    from .regression import forecast_number

    seed = seed_of(table, target.name)
    split = split_rows(target.answers, seed)
    encoder = Encoder.fit(table, features, [target.labelled[position] for position in split.train])
    problem = Problem(
        matrix=numpy.array(encoder.encode(table, target.labelled), dtype=float),
        answers=target.answers,
        split=split,
        names=encoder.names,
        open_rows=target.open_rows,
        open_matrix=numpy.array(encoder.encode(table, target.open_rows), dtype=float),
        level=level,
        seed=seed,
    )
    with threadpool_limits(1):  # many threads slow down small data, and change the last digits
        return forecast_class(problem) if target.task == "classification" else forecast_number(problem)


def _result(
    request: SkillRequest,
    table: Table,
    path: Path | None,
    columns: list[Column],
    features: list[Column],
    target: Target,
    outcome: Outcome,
    warnings: list[str],
) -> SkillResult:
    bucket = bucket_of(table, path)
    facts = _facts(request, table, bucket, target, outcome)
    whole: dict[str, Any] = {
        "file": table.name,
        "bucket": bucket,
        "target": target.name,
        "task": target.task,
        "method": outcome.method,
        "rows": len(table.rows),
        "labelled_rows": len(target.labelled),
        "open_rows": len(target.open_rows),
        "columns": [column.as_json() for column in columns],
        "features": [column.name for column in features],
        "evaluation": outcome.evaluation,
        "importance": outcome.importance,
        "warnings": warnings + outcome.notes,
        "facts": [{"bucket": fact.bucket, "key": fact.key, "value": fact.value} for fact in facts],
    }
    summary = _summary(table, target, outcome)
    artifact = _artifact(request, whole, outcome, summary)
    return SkillResult(
        summary=summary,
        artifacts=(artifact,),
        signals=_signals(target, outcome, warnings),
        insights=tuple(warnings + outcome.notes),
        facts=facts,
        confidence=confidence_of(outcome),
        next_recommended_actions=tuple(f"Check: {text}" for text in warnings if "almost determines" in text),
    )


def _summary(table: Table, target: Target, outcome: Outcome) -> str:
    figures = outcome.evaluation
    if outcome.method == NO_FORECAST:
        return f"No forecast of {target.name} in {table.name}: only {count_noun(len(target.labelled), 'known answer')}."
    text = f"{target.task.capitalize()} of {target.name} in {table.name} by {outcome.method}"
    held = figures.get("held_out_rows", 0)
    if "mae" in figures:
        text += (
            f": held-out MAE {format_number(figures['mae'])} (median alone {format_number(figures['mae_of_median'])}), "
            f"{format_percent(figures['interval_level'])} intervals covered "
            f"{format_measured_share(figures['coverage'], held)}"
        )
    elif "brier" in figures:
        text += (
            f": held-out Brier {format_number(figures['brier'])} (base rate alone "
            f"{format_number(figures['brier_of_base_rate'])}), "
            f"accuracy {format_measured_share(figures['accuracy'], held)}, {format_percent(figures['set_level'])} sets "
            f"covered {format_measured_share(figures['set_coverage'], held)}"
        )
    return f"{text}. {count_noun(len(outcome.forecasts), 'row')} forecast."


def confidence_of(outcome: Outcome) -> float:
    """Return the share of the baseline's held-out error that the model removes; 0.2 for a baseline, 0 without one."""
    figures = outcome.evaluation
    if outcome.method == NO_FORECAST:
        return 0.0
    for error, naive in (("mae", "mae_of_median"), ("brier", "brier_of_base_rate")):
        if error in figures and figures[naive]:
            return round(min(1.0, max(0.0, 1 - figures[error] / figures[naive])), 4)
    return 0.2


def _signals(target: Target, outcome: Outcome, warnings: list[str]) -> tuple[Signal, ...]:
    found: list[Signal] = []
    leaking = [text for text in warnings if "almost determines" in text]
    found += [Signal(name="leakage", strength=1.0, subject=text.split(" ", 1)[0], note=text) for text in leaking[:5]]
    if len(target.labelled) < SMALL_ROWS:
        strength = round(1 - len(target.labelled) / SMALL_ROWS, 4)
        rows = f"only {count_noun(len(target.labelled), 'labelled row')}"
        found.append(Signal(name="small_data", strength=strength, subject=target.name, note=rows))
    if outcome.evaluation.get("mae") or outcome.evaluation.get("brier"):
        strength = confidence_of(outcome)
        note = "share of the baseline's error removed"
        found.append(Signal(name="predictability", strength=strength, subject=target.name, note=note))
    return tuple(found)


def _facts(request: SkillRequest, table: Table, bucket: str, target: Target, outcome: Outcome) -> tuple[Fact, ...]:
    values: dict[str, Any] = {
        "rows": len(table.rows),
        "target": target.name,
        "forecast_method": outcome.method,
        "open_rows": len(target.open_rows),
    }
    for name in ("mae", "coverage", "brier", "accuracy"):
        if name in outcome.evaluation:
            values[f"held_out_{name}"] = outcome.evaluation[name]
    shared = ("csv", "forecast", bucket, table.name.lower(), target.name.lower())
    return tuple(
        Fact(
            bucket=bucket,
            key=key,
            value=value,
            keywords=tuple(dict.fromkeys([*shared, *key.split("_")])),
            source=request.task_id,
            learned_at=request.now,
        )
        for key, value in values.items()
    )


def bucket_of(table: Table, path: Path | None) -> str:
    """Return the bucket of facts about the table: by its real path, or by its content if it is inline."""
    if path is not None:
        return "file:" + hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return "table:" + hashlib.sha256(repr(table.header).encode()).hexdigest()[:16]


def _artifact(request: SkillRequest, whole: dict[str, Any], outcome: Outcome, summary: str) -> Artifact:
    full = whole | {"forecasts": outcome.forecasts[:WRITTEN], "points": outcome.points}
    data = json.dumps(full, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / "csv_forecast.json").write_bytes(data)
    return Artifact(
        type="csv_forecast",
        name="csv_forecast.json",
        summary=summary,
        value=whole | {"columns": whole["columns"][:30], "forecasts": outcome.forecasts[:SHOWN]},
        uri="workdir:csv_forecast.json",
        mime="application/json",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
