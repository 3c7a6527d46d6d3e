"""The sections of a report on a CSV forecast."""

from __future__ import annotations

from typing import Any

from .markdown import bullets, code, inline, number, table
from .sources import Source

_SHOWN = 15
_FIGURES = {
    "held_out_rows": "Held-out rows", "accuracy": "Accuracy", "accuracy_of_commonest": "Accuracy of the usual class",
    "brier": "Brier score", "brier_of_base_rate": "Brier score of the base rate", "log_loss": "Log-loss",
    "log_loss_of_base_rate": "Log-loss of the base rate", "mae": "Mean absolute error",
    "mae_of_median": "Mean absolute error of the median", "rmse": "Root mean squared error",
    "rmse_of_mean": "Root mean squared error of the mean", "interval_level": "Level of the intervals",
    "coverage": "Coverage measured", "interval_half_width": "Half width of the intervals",
    "set_level": "Level of the sets", "set_coverage": "Coverage measured", "mean_set_size": "Mean classes in a set",
    "p10": "10% of the known answers are below", "median": "Median", "p90": "90% are below",
}  # fmt: skip


def csv_section(source: Source) -> str:
    """Return the table, the model's held-out figures, the important features, and the forecast rows."""
    content = source.content
    parts = [
        "## The table",
        f"{code(content.get('file', ''))} has {number(content.get('rows', 0))} rows; "
        f"{code(content.get('target', ''))} is known in {number(content.get('labelled_rows', 0))} of them and open in "
        f"{number(content.get('open_rows', 0))}. {source.cite}",
        table(
            ["Column", "Kind", "Missing", "Different values"],
            [
                [code(entry["name"]), inline(entry["kind"]), number(entry["missing"]), number(entry["distinct"])]
                for entry in content.get("columns", [])[:30]
            ],
            "llrr",
        ),
        "## The forecast",
        f"{inline(str(content.get('task', '')).capitalize())} by {inline(content.get('method', ''))}. {source.cite}",
    ]
    parts += _evaluation(content, source) + _important(content, source) + _rows(content, source)
    warnings = content.get("warnings", [])
    if warnings:
        parts += [f"### Warnings {source.cite}", bullets(inline(text) for text in warnings)]
    return "\n\n".join(parts)


def _evaluation(content: dict[str, Any], source: Source) -> list[str]:
    figures: dict[str, Any] = content.get("evaluation", {})
    rows = [[label, number(figures[name])] for name, label in _FIGURES.items() if name in figures]
    if not rows:
        return ["Nothing was held out, since there was nothing to learn."]
    parts = [f"### On rows the model never saw {source.cite}", table(["Figure", "Value"], rows, "lr")]
    for name in ("coverage_range", "set_coverage_range"):
        if name in figures:
            low, high = figures[name]
            parts.append(
                f"With this many rows the true coverage is between {low:.0%} and {high:.0%} (95%). {source.cite}"
            )
    bins = figures.get("reliability", {}).get("bins", [])
    if bins:
        lines = [[number(entry["n"]), f"{entry['forecast']:.2f}", f"{entry['outcome']:.2f}"] for entry in bins]
        of = inline(figures["reliability"]["of"])
        parts += [f"### Reliability of {of} {source.cite}", table(["Rows", "Forecast", "Outcome"], lines, "rrr")]
    return parts


def _important(content: dict[str, Any], source: Source) -> list[str]:
    entries = [entry for entry in content.get("importance", []) if entry["loss"] > 0]
    if not entries:
        return []
    rows = [[code(entry["feature"]), number(entry["loss"]), number(entry["spread"])] for entry in entries]
    head = f"### What it leans on {source.cite}"
    text = "Loss of the held-out score when a column is shuffled."
    return [head, text, table(["Column", "Loss", "Spread"], rows, "lrr")]


def _rows(content: dict[str, Any], source: Source) -> list[str]:
    forecasts: list[dict[str, Any]] = content.get("forecasts", [])
    if not forecasts:
        return []
    shown = forecasts[:_SHOWN]
    title = f"### Rows forecast ({len(shown)} of {number(content.get('open_rows', len(forecasts)))}) {source.cite}"
    if "low" in shown[0]:
        rows = [
            [number(entry["row"]), number(entry["forecast"]), f"{number(entry['low'])} to {number(entry['high'])}"]
            for entry in shown
        ]
        return [title, table(["Row", "Forecast", "Interval"], rows, "rrr")]
    rows = [
        [
            number(entry["row"]),
            inline(entry["forecast"]),
            f"{entry.get('probability', {}).get(entry['forecast'], 1.0):.0%}",
            inline(", ".join(entry.get("set", [])) or "-"),
        ]
        for entry in shown
    ]
    return [title, table(["Row", "Forecast", "Probability", "Set"], rows, "rlrl")]
