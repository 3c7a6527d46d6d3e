"""The sections of a report on a CSV forecast."""

from __future__ import annotations

from typing import Any

from fireswarm import count_noun, format_measured_share, format_percent, format_range, format_score

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

_LEVELS = frozenset({"interval_level", "set_level"})
_MEASURED = frozenset({"accuracy", "accuracy_of_commonest", "coverage", "set_coverage"})


def csv_section(source: Source) -> str:
    """Return the table, the model's held-out figures, the important features, and the forecast rows."""
    content = source.content
    parts = [
        "## The table",
        f"{code(content.get('file', ''))} has {count_noun(content.get('rows', 0), 'row')}; "
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
        f"{_method(content)} {source.cite}",
    ]
    parts += _evaluation(content, source) + _important(content, source) + _rows(content, source)
    warnings = content.get("warnings", [])
    if warnings:
        parts += [f"### Warnings {source.cite}", bullets(inline(text) for text in warnings)]
    return "\n\n".join(parts)


def _method(content: dict[str, Any]) -> str:
    method = str(content.get("method", ""))
    if method == "none":
        return "There is no forecast."
    return f"{inline(str(content.get('task', '')).capitalize())} by {inline(method)}."


def _evaluation(content: dict[str, Any], source: Source) -> list[str]:
    figures: dict[str, Any] = content.get("evaluation", {})
    held = figures.get("held_out_rows", 0)
    rows = [[label, _figure(name, figures[name], held)] for name, label in _FIGURES.items() if name in figures]
    if not rows:
        return []
    title = "On rows the model never saw" if held else "The known answers"
    parts = [f"### {title} {source.cite}", table(["Figure", "Value"], rows, "lr")]
    for name in ("coverage_range", "set_coverage_range"):
        if name in figures:
            low, high = figures[name]
            extent, rows_held = format_range(low, high, format_percent), count_noun(held, "held-out row")
            parts.append(f"By {rows_held}, the true coverage is {extent} with 95% confidence. {source.cite}")
    bins = figures.get("reliability", {}).get("bins", [])
    if bins:
        lines = [
            [number(entry["n"]), format_score(entry["forecast"]), format_score(entry["outcome"])] for entry in bins
        ]
        of = inline(figures["reliability"]["of"])
        parts += [f"### Reliability of {of} {source.cite}", table(["Rows", "Forecast", "Outcome"], lines, "rrr")]
    return parts


def _figure(name: str, value: Any, held: int) -> str:
    """Return a figure of the evaluation: levels in percent, shares of the held-out rows as their number allows."""
    if name in _LEVELS:
        return format_percent(value)
    return format_measured_share(value, held) if name in _MEASURED and held else number(value)


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
    extent = f"{len(shown):,} of {content.get('open_rows', len(forecasts)):,}"
    title = f"### Rows forecast ({extent}) {source.cite}"
    known = content.get("labelled_rows", 0) if content.get("method") == "class frequencies" else 0
    columns = [
        ("Row", "r", [number(entry["row"]) for entry in shown]),
        ("Forecast", "l" if isinstance(shown[0]["forecast"], str) else "r", [number(e["forecast"]) for e in shown]),
        ("Interval", "r", [_interval(entry) for entry in shown]),
        ("Known answers" if known else "Probability", "r", [_probability(entry, known) for entry in shown]),
        ("Set", "l", [inline(", ".join(entry.get("set", []))) for entry in shown]),
    ]
    columns = [column for column in columns if any(column[2])]
    rows = zip(*(cells for _, _, cells in columns), strict=True)
    align = "".join(side for _, side, _ in columns)
    return [title, table([name for name, _, _ in columns], rows, align)]


def _interval(entry: dict[str, Any]) -> str:
    return format_range(entry["low"], entry["high"], number) if "low" in entry else ""


def _probability(entry: dict[str, Any], known: int) -> str:
    """Return the probability of a forecast; without a model, its share of the *known* answers."""
    share = entry.get("probability", {}).get(entry["forecast"])
    if share is None:
        return ""
    return format_measured_share(share, known) if known else format_percent(share)
