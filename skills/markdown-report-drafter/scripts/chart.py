"""Draw one chart for a report, as SVG: the same input gives the same bytes."""

from __future__ import annotations

import io
import warnings
from typing import Any

from fireswarm import count_noun, format_percent, install_command

from .sources import Source, of_type

MISSING_EXTRA = (
    f"There is no chart: matplotlib is missing, which the extra `report` installs: {install_command('report')}"
)

_BARS = 12
_BLUE, _GREY, _INK = "#2f6f9f", "#b9c4cc", "#23303a"


def draw(sources: list[Source], kind: str, form: str = "svg") -> tuple[bytes, str] | None:
    """Return the chart for the artifacts and a description of it; None if there is nothing to draw.

    Raises :class:`ImportError` without matplotlib.
    """
    risk, forecast, inventory = (of_type(sources, name) for name in ("risk_scores", "csv_forecast", "inventory"))
    if kind == "notes" and inventory is not None and inventory.content.get("keywords"):
        return _keywords(inventory, form)
    if forecast is not None:
        if not forecast.content.get("points"):
            return None
        regression = forecast.content.get("task") == "regression"
        return _intervals(forecast, form) if regression else _reliability(forecast, form)
    if risk is not None and risk.content.get("scores"):
        return _risk(risk, form)
    if inventory is not None and len([e for e in inventory.content.get("languages", []) if e.get("lines")]) > 1:
        return _languages(inventory, form)
    return None


def _figure(rows: int) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({
        "svg.hashsalt": "fireswarm", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
        "axes.edgecolor": _GREY, "axes.labelcolor": _INK, "text.color": _INK, "xtick.color": _INK, "ytick.color": _INK,
    })  # fmt: skip
    figure: Any = Figure(figsize=(8, max(2.6, 1.2 + 0.32 * rows)), layout="constrained")
    axes: Any = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _bytes(figure: Any, form: str) -> bytes:
    stream = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(stream, format=form, metadata=metadata, dpi=110)
    return stream.getvalue()


def _short(path: str, most: int = 44) -> str:
    """Shorten a path to fit next to a bar: its end is more informative than its beginning."""
    clean = path.replace("$", "\\$")
    return clean if len(clean) <= most else "…" + clean[-(most - 1) :]


def _risk(source: Source, form: str) -> tuple[bytes, str]:
    scores = source.content["scores"][:_BARS][::-1]
    figure, axes = _figure(len(scores))
    places = list(range(len(scores)))
    values = [entry["score"] for entry in scores]
    below = [entry["score"] - entry["low"] for entry in scores]
    above = [entry["high"] - entry["score"] for entry in scores]
    axes.barh(places, values, color=_BLUE, height=0.62)
    banded = max((*below, *above)) > 0
    if banded:
        axes.errorbar(values, places, xerr=[below, above], fmt="none", ecolor=_INK, elinewidth=1.1, capsize=3)
    axes.set_yticks(places, [_short(entry["path"]) for entry in scores])
    axes.set_xlim(0, min(1.0, max(entry["high"] for entry in scores) * 1.06 + 0.01))
    axes.set_xlabel("score, with its band" if banded else "score")
    axes.set_title(
        f"Highest risk of {count_noun(len(source.content['scores']), 'file')}, by {source.content['method']}",
        loc="left",
    )
    return _bytes(figure, form), "The highest risk scores" + (" with their bands" if banded else "")


def _languages(source: Source, form: str) -> tuple[bytes, str]:
    entries = [entry for entry in source.content["languages"] if entry.get("lines")][:_BARS][::-1]
    figure, axes = _figure(len(entries))
    places = list(range(len(entries)))
    bars = axes.barh(places, [entry["lines"] for entry in entries], color=_BLUE, height=0.62)
    axes.bar_label(
        bars,
        [f"{entry['lines']:,} in {count_noun(entry['files'], 'file')}" for entry in entries],
        padding=4,
        fontsize=8,
    )
    axes.set_yticks(places, [entry["name"] for entry in entries])
    axes.margins(x=0.22)
    axes.set_xlabel("lines")
    axes.set_title("Lines by language", loc="left")
    return _bytes(figure, form), "Lines by language"


def _keywords(source: Source, form: str) -> tuple[bytes, str]:
    entries = [entry for entry in source.content["keywords"] if isinstance(entry, dict)][:_BARS][::-1]
    figure, axes = _figure(len(entries))
    places = list(range(len(entries)))
    bars = axes.barh(places, [entry["score"] for entry in entries], color=_BLUE, height=0.62)
    axes.bar_label(bars, [count_noun(entry["files"], "file") for entry in entries], padding=4, fontsize=8)
    axes.set_yticks(places, [entry["term"] for entry in entries])
    axes.margins(x=0.14)
    axes.set_xlabel("weight over all documents")
    axes.set_title("Keywords", loc="left")
    return _bytes(figure, form), "The keywords with the most weight"


def _intervals(source: Source, form: str) -> tuple[bytes, str]:
    points = sorted(source.content["points"], key=lambda point: (point["forecast"], point["actual"]))
    figure, axes = _figure(9)
    places = list(range(len(points)))
    level = source.content["evaluation"]["interval_level"]
    low, high = [point["low"] for point in points], [point["high"] for point in points]
    axes.fill_between(
        places, low, high, color=_GREY, alpha=0.55, linewidth=0, label=f"{format_percent(level)} interval"
    )
    axes.plot(places, [point["forecast"] for point in points], color=_BLUE, linewidth=1.6, label="forecast")
    axes.scatter(places, [point["actual"] for point in points], s=11, color=_INK, zorder=3, label="actual")
    axes.set_xlabel("held-out rows, by forecast")
    axes.set_ylabel(str(source.content["target"]).replace("$", "\\$"))
    axes.set_title("Forecast and outcome on rows the model never saw", loc="left")
    axes.legend(frameon=False, loc="upper left")
    return _bytes(figure, form), "Forecast, interval and outcome on held-out rows"


def _reliability(source: Source, form: str) -> tuple[bytes, str]:
    reliability = source.content["evaluation"]["reliability"]
    bins = reliability["bins"]
    figure, axes = _figure(9)
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=1.2, linestyle="--", label="perfectly calibrated")
    axes.plot(
        [entry["forecast"] for entry in bins], [entry["outcome"] for entry in bins],
        color=_BLUE, linewidth=1.4, marker="o", markersize=6, label=f"held-out rows ({sum(e['n'] for e in bins)})",
    )  # fmt: skip
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel(f"forecast probability of {str(reliability['of'])}".replace("$", "\\$"))
    axes.set_ylabel("share that came true")
    axes.set_title("Reliability on rows the model never saw", loc="left")
    axes.legend(frameon=False, loc="upper left")
    return _bytes(figure, form), "How often what was forecast came true"
