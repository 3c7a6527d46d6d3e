"""Forecast which files are likely to cause trouble: learned from history if possible, otherwise ranked."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from typing import Any

from fireswarm import (
    Artifact,
    Fact,
    Signal,
    SkillRequest,
    SkillResult,
    count_noun,
    format_number,
    format_percent,
    format_range,
    format_score,
    install_command,
    read_artifact_object,
)

from . import supervised
from .features import fixed_between, histories_until, last_time, scored_files
from .metrics import auc
from .ranked import BAND, WEIGHTS, Scored, score_ranks, table_of

SHOWN = 25
SIGNALS = 5
LEAST_RANKED = 5
"""Minimum files of an order: the scores of fewer would be 0, 1 and little between."""

MISSING_EXTRA = f"scikit-learn is not installed; the extra `predict` installs it: {install_command('predict')}"
SCORE_MEANS = "probability that a fix-like commit touches the file in a period like the last quarter of the commits"


@dataclass(frozen=True)
class Forecast:
    """The scores, their method, and their known error."""

    method: str
    scores: list[Scored]
    about: dict[str, Any]
    insights: tuple[str, ...]
    confidence: float


def run(request: SkillRequest) -> SkillResult:
    """Score the files of the inventory in the request."""
    source = next((artifact for artifact in request.artifacts if artifact.type == "inventory"), None)
    if source is None:
        summary = "There is no inventory artifact to score. Let this task depend on workspace-inventory."
        return SkillResult.failure(summary)
    inventory = read_artifact_object(source)
    if not isinstance(inventory.get("files"), list):
        name = source.name or "the inventory"
        summary = f"The file of {name} could not be read; only its totals are available. Run the inventory again."
        return SkillResult.failure(summary, retryable=True)
    records = scored_files(inventory)
    if not records:
        return SkillResult(
            summary="There is no text file to score.", artifacts=(_artifact(request, inventory, _nothing()),)
        )
    forecast = make_forecast(inventory, records)
    if len(records) < LEAST_RANKED or not forecast.scores:
        summary = f"There is nothing to rank: {_why_no_order(records)}."
        return SkillResult(summary=summary, artifacts=(_artifact(request, inventory, _nothing(), summary),))
    return _result(request, inventory, forecast)


def _why_no_order(records: list[dict[str, Any]]) -> str:
    if len(records) < LEAST_RANKED:
        return f"{count_noun(len(records), 'file')} to compare, and an order needs {LEAST_RANKED}"
    return "the files do not differ in any measure"


def make_forecast(inventory: dict[str, Any], records: list[dict[str, Any]]) -> Forecast:
    """Use the supervised route if history and the extra allow it, otherwise the rank route with the reason."""
    history: dict[str, Any] | None = inventory.get("history")
    seed = seed_of(inventory)
    if importlib.util.find_spec("sklearn") is None:
        return _rank_route(inventory, records, history, seed, MISSING_EXTRA, {})
    verdict = supervised.judge(history)
    if not verdict.usable or history is None:
        return _rank_route(inventory, records, history, seed, verdict.reason, verdict.evaluation)
    with supervised.one_thread():
        scores, fitted = supervised.forecast(verdict, records, history, seed)
    about = {
        "features": list(supervised.LEARNED),
        "coefficients": fitted.coefficients(),
        "evaluation": verdict.evaluation,
        "bands": f"{format_range(*BAND, format_percent)} of {supervised.REFITS} refits on resampled files",
        "score_means": SCORE_MEANS,
    }
    evaluation = verdict.evaluation
    insights = [
        f"Learned from {count_noun(evaluation['train_files'], 'file')}, judged on "
        f"{format_number(evaluation['held_out_files'])} later: AUC {format_score(evaluation['auc'])} (commit count "
        f"alone {format_score(evaluation['auc_by_commit_count'])}), Brier {format_number(evaluation['brier'])} "
        f"(base rate alone {format_number(evaluation['brier_of_base_rate'])}).",
    ]
    if evaluation["brier"] > evaluation["brier_of_base_rate"]:
        insights.append("The probabilities are no better than the base rate: use only the order, not the figures.")
    return Forecast("logistic regression", scores, about, tuple(insights), evaluation["auc"])


def _rank_route(
    inventory: dict[str, Any],
    records: list[dict[str, Any]],
    history: dict[str, Any] | None,
    seed: int,
    reason: str,
    evaluation: dict[str, Any],
) -> Forecast:
    tests_known = bool(inventory.get("totals", {}).get("test_files"))
    now = last_time(history) if history else 0.0
    columns = table_of(records, histories_until(history, now) if history else {}, tests_known=tests_known)
    scores, draws = score_ranks(records, columns, seed)
    backtest = backtest_ranks(history)
    about = {
        "features": [name for name in WEIGHTS if name in columns],
        "weights": {name: weight for name, weight in WEIGHTS.items() if name in columns},
        "evaluation": backtest,
        "bands": f"{format_range(*BAND, format_percent)} of {draws} Dirichlet draws of the weights, widened by leaving "
        "out each feature once",
        "score_means": "weighted mean of percentile ranks among these files; an order, not a probability",
        "why_not_supervised": reason,
    }
    if evaluation:
        about["supervised_evaluation"] = evaluation
    insights = [f"Ranked rather than learned, because {reason}."]
    if backtest:
        insights.append(
            f"Backtest: the same ranking as of {backtest['as_of_share']} of the history found the "
            f"{count_noun(backtest['fixed'], 'file')} fixed later with an AUC of {format_score(backtest['auc'])}."
        )
    elif history is not None:
        insights.append("The ranking could not be backtested: too few fixes in the history.")
    return Forecast("weighted ranks", scores, about, tuple(insights), backtest["auc"] if backtest else 0.5)


def backtest_ranks(history: dict[str, Any] | None) -> dict[str, Any]:
    """Return the AUC of the rank score at the last cut against later fixes; empty with fewer than three fixes."""
    if history is None or not history.get("splits"):
        return {}
    split = history["splits"][-1]
    paths = sorted(path for path, measured in split["files"].items() if measured[1] is not None)
    fixed = fixed_between(history, split["time"], last_time(history))
    labels = [path in fixed for path in paths]
    if sum(labels) < 3:
        return {}
    records = [{"path": p, "lines": split["files"][p][0], "complexity": split["files"][p][1]} for p in paths]
    columns = table_of(records, histories_until(history, split["time"]), tests_known=False)
    if not columns:
        return {}
    scores = {file.path: file.score for file in score_ranks(records, columns, 0)[0]}
    area = auc([scores[path] for path in paths], labels)
    if area is None:
        return {}
    return {"auc": round(area, 4), "files": len(paths), "fixed": sum(labels), "as_of_share": "three quarters"}


def _result(request: SkillRequest, inventory: dict[str, Any], forecast: Forecast) -> SkillResult:
    first = forecast.scores[0]
    bucket = inventory["folder"]["bucket"]
    summary = (
        f"Scored {count_noun(len(forecast.scores), 'file')} by {forecast.method}; "
        f"highest {first.path} at {_with_band(first)}."
    )
    facts = facts_of(request, inventory, forecast)
    artifact = _artifact(request, inventory, forecast, summary, facts)
    return SkillResult(
        summary=summary,
        artifacts=(artifact,),
        signals=tuple(
            Signal(name="risk", strength=file.score, subject=file.path, note="; ".join(file.why))
            for file in forecast.scores[:SIGNALS]
        ),
        insights=(*forecast.insights, f"Facts are stored under {bucket}."),
        facts=facts,
        confidence=round(min(1.0, max(0.0, forecast.confidence)), 4),
        next_recommended_actions=tuple(
            f"Review {file.path} first: {', '.join(file.why) or 'highest score'}." for file in forecast.scores[:3]
        ),
    )


def _with_band(file: Scored) -> str:
    """Return a score with its band, if the band is wider than the score."""
    score, band = format_score(file.score), format_range(file.low, file.high)
    return score if score == band else f"{score} ({band})"


def facts_of(request: SkillRequest, inventory: dict[str, Any], forecast: Forecast) -> tuple[Fact, ...]:
    """The riskiest files, the method and its error, in the folder's bucket."""
    folder = inventory["folder"]
    values: dict[str, Any] = {
        "riskiest_files": [file.path for file in forecast.scores[:5]],
        "highest_risk": forecast.scores[0].score,
        "risk_method": forecast.method,
    }
    area = forecast.about["evaluation"].get("auc")
    if area is not None:
        values["risk_auc"] = area
    shared = ("risk", folder["bucket"], folder["name"].lower())
    return tuple(
        Fact(
            bucket=folder["bucket"],
            key=key,
            value=value,
            keywords=tuple(dict.fromkeys([*shared, *key.split("_")])),
            source=request.task_id,
            confidence=round(min(1.0, max(0.0, forecast.confidence)), 4),
            learned_at=request.now,
        )
        for key, value in values.items()
    )


def _artifact(
    request: SkillRequest,
    inventory: dict[str, Any],
    forecast: Forecast,
    summary: str = "There is no text file to score.",
    facts: tuple[Fact, ...] = (),
) -> Artifact:
    stated = [{"bucket": fact.bucket, "key": fact.key, "value": fact.value} for fact in facts]
    scores = [vars(file) | {"why": list(file.why)} for file in forecast.scores]
    head = {"folder": inventory["folder"]["name"], "method": forecast.method, "files": len(scores)}
    whole = head | forecast.about | {"insights": list(forecast.insights), "facts": stated}
    data = json.dumps(whole | {"scores": scores}, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / "risk_scores.json").write_bytes(data)
    return Artifact(
        type="risk_scores",
        name="risk_scores.json",
        summary=summary,
        value=whole | {"scores": scores[:SHOWN]},
        uri="workdir:risk_scores.json",
        mime="application/json",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _nothing() -> Forecast:
    return Forecast("none", [], {"evaluation": {}, "features": []}, (), 0.0)


def seed_of(inventory: dict[str, Any]) -> int:
    """Return a seed from the scored data: file hashes and history, not the time of the inventory."""
    history = inventory.get("history") or {}
    content = [[record["path"], record.get("sha256")] for record in inventory["files"]]
    text = json.dumps([content, history.get("head")], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
