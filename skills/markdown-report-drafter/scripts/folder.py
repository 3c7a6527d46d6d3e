"""The sections of a report on a folder: its content, findings, and likely trouble."""

from __future__ import annotations

from typing import Any

from fireswarm import (
    count_noun,
    format_extent,
    format_number,
    format_percent,
    format_range,
    format_score,
    format_size,
)

from .markdown import bullets, code, inline, number, table
from .sources import Source

SHOWN_LANGUAGES, SHOWN_KINDS, SHOWN_FILES, SHOWN_FINDINGS = 8, 20, 10, 12

TOP = 10
LEAST_FOR_TOP = 2 * TOP
"""Minimum scored files for the share of draws in the top ten: of twelve files, ten are there anyway."""


def inventory_section(source: Source) -> str:
    """Totals above zero, languages, kinds of binary files, and the largest files."""
    content = source.content
    parts = [
        "## What is there",
        f"{_listing(content)} {source.cite}",
        table(["Measure", "Count"], _totals(content), "lr"),
    ]
    languages = content.get("languages", [])
    if languages:
        lines = [
            [inline(entry["name"]), number(entry["files"]), number(entry.get("lines", 0)), number(entry["bytes"])]
            for entry in languages[:SHOWN_LANGUAGES]
        ]
        parts += [
            _headed("Languages", len(lines), len(languages), source),
            table(["Language", "Files", "Lines", "Bytes"], lines, "lrrr"),
        ]
    binaries = content.get("binaries", [])
    if binaries:
        rows = [[inline(e["name"]), number(e["files"]), format_size(e["bytes"])] for e in binaries[:SHOWN_KINDS]]
        parts += [
            _headed("Kinds of files that are not text", len(rows), len(binaries), source),
            table(["Kind", "Files", "Size"], rows, "lrr"),
        ]
    largest = _largest(content)
    if len(largest) > 1:
        parts += [f"### Largest files {source.cite}", _largest_table(largest)]
    return "\n\n".join(parts)


def _totals(content: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the measures; a zero is shown only if it says something."""
    totals: dict[str, Any] = content.get("totals", {})
    sources, links = totals.get("source_files", 0), totals.get("links", 0)
    measures = [
        ("Files", totals.get("files", 0), True),
        ("Empty files", totals.get("empty_files", 0), False),
        ("Lines of text", totals.get("lines", 0), False),
        ("Bytes", totals.get("bytes", 0), True),
        ("Source files, without tests", sources, False),
        ("Test files", totals.get("test_files", 0), sources),
        ("Source lines that no test reaches", totals.get("untested_lines", 0), totals.get("test_files", 0)),
        ("Open markers", totals.get("markers", 0), False),
        ("Links", links, False),
        ("Broken links", totals.get("broken_links", 0), links),
        ("Groups of identical files", totals.get("duplicate_groups", 0), False),
    ]
    return [[name, number(count)] for name, count, always in measures if count or always]


def _largest_table(largest: list[dict[str, Any]]) -> str:
    """Return the table of files: text with its lines, other files with their kind."""
    lines = any("lines" in entry for entry in largest)
    kinds = any("format" in entry for entry in largest)
    columns = [
        ("File", "l", [code(entry["path"]) for entry in largest]),
        ("Kind", "l", [inline(entry.get("format") or "Text") for entry in largest] if kinds else []),
        ("Lines", "r", [number(entry["lines"]) if "lines" in entry else "" for entry in largest] if lines else []),
        ("Bytes", "r", [number(entry["bytes"]) for entry in largest]),
    ]
    columns = [column for column in columns if column[2]]
    rows = zip(*(cells for _, _, cells in columns), strict=True)
    return table([name for name, _, _ in columns], rows, "".join(side for _, side, _ in columns))


def risk_section(source: Source) -> str:
    """Return the highest scores with their bands, and the known error of the scores."""
    content = source.content
    scores: list[dict[str, Any]] = content.get("scores", [])[:SHOWN_FILES]
    if not scores:
        return ""  # the summary of the report has the reason
    files = content.get("files", len(scores))
    explained = [
        f"{count_noun(files, 'file')} were scored by {inline(content.get('method', ''))}.",
        f"A score is the {inline(content.get('score_means', ''))}.",
    ]
    columns = [
        ("#", "r", [str(place) for place in range(1, len(scores) + 1)]),
        ("File", "l", [code(entry["path"]) for entry in scores]),
        ("Score", "r", [format_score(entry["score"]) for entry in scores]),
    ]
    bands = [format_range(entry["low"], entry["high"]) for entry in scores]
    if bands != columns[2][2]:
        explained.append(f"Bands: {inline(content.get('bands', ''))}.")
        columns.append(("Band", "r", bands))
    if files >= LEAST_FOR_TOP:
        explained.append("*In the top ten* is the share of those draws or refits that put the file there.")
        columns.append(("In the top ten", "r", [format_percent(entry["top_share"]) for entry in scores]))
    columns.append(("Why", "l", [inline("; ".join(entry["why"])) for entry in scores]))
    rows = zip(*(cells for _, _, cells in columns), strict=True)
    parts = [
        "## Where trouble is likely",
        f"{' '.join(explained)} {source.cite}",
        table([name for name, _, _ in columns], rows, "".join(side for _, side, _ in columns)),
        f"### How far to trust it {source.cite}",
        bullets(_trust(content)),
    ]
    return "\n\n".join(parts)


def noticed_section(source: Source) -> str:
    """Return broken links, duplicates and open markers, with their places."""
    content = source.content
    parts: list[str] = []
    broken = content.get("broken_links", [])
    if broken:
        rows = [[code(entry["path"]), str(entry["line"]), code(entry["target"])] for entry in broken[:SHOWN_FINDINGS]]
        parts += [_headed("Broken links", len(rows), content["totals"]["broken_links"], source)]
        parts += [table(["File", "Line", "Target"], rows, "lrl")]
    duplicates = content.get("duplicates", [])
    if duplicates:
        rows = [
            [", ".join(code(path) for path in entry["paths"][:4]), number(entry["bytes"])]
            for entry in duplicates[:SHOWN_FINDINGS]
        ]
        parts += [_headed("Identical files", len(rows), content["totals"]["duplicate_groups"], source)]
        parts += [table(["Files", "Bytes each"], rows, "lr")]
    markers = open_markers(content)
    if markers:
        rows = [
            [code(f"{entry['path']}:{entry['line']}"), inline(entry["kind"]), inline(entry["text"])]
            for entry in markers[:SHOWN_FINDINGS]
        ]
        parts += [_headed("Open markers", len(rows), content["totals"]["markers"], source)]
        parts += [table(["Place", "Kind", "Text"], rows)]
    return "\n\n".join(["## What was noticed", *parts]) if parts else ""


def open_markers(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every marker of the inventory with its file."""
    return [
        {"path": record["path"], **marker}
        for record in content.get("files", [])
        for marker in record.get("markers", [])
    ]


def _headed(title: str, shown: int, total: int, source: Source) -> str:
    return f"### {title} ({format_extent(shown, total)}) {source.cite}"


def _listing(content: dict[str, Any]) -> str:
    folder: dict[str, Any] = content.get("folder", {})
    listed_by = folder.get("listed_by", "name")
    how = "a walk through its folders" if listed_by == "walk" else inline(listed_by)
    text = f"{code(folder.get('name', 'The folder'))} was listed by {how}"
    history = content.get("history") or content.get("git")
    if history:
        text += (
            f" at commit {code(str(history.get('head', ''))[:12])}, with "
            f"{count_noun(history['commits_read'], 'commit')} read"
        )
    if left := left_out_of(content):
        text += f"; left out: {inline(left)}"
    return text + "."


def left_out_of(content: dict[str, Any]) -> str:
    """Return what the inventory left out, in words, or ""."""
    folder: dict[str, Any] = content.get("folder", {})
    counted = (f"{count:,} {name.replace('_', ' ')}" for name, count in (folder.get("left_out") or {}).items())
    return folder.get("left_out_text") or ", ".join(counted)


def _largest(content: dict[str, Any]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = content.get("files") or content.get("largest_files", [])
    return sorted(files, key=lambda record: (-record["bytes"], record["path"]))[:SHOWN_FILES]


def _trust(content: dict[str, Any]) -> list[str]:
    evaluation: dict[str, Any] = content.get("evaluation", {})
    found = [f"Features: {inline(', '.join(content['features']))}."] if content.get("features") else []
    if content.get("why_not_supervised"):
        found.append(f"Not learned from history: {inline(content['why_not_supervised'])}.")
    if "brier" in evaluation:
        found.append(
            f"Trained on {count_noun(evaluation['train_files'], 'file')} ({number(evaluation['train_fixed'])} fixed), "
            f"judged on {number(evaluation['held_out_files'])} later ({number(evaluation['held_out_fixed'])} fixed)."
        )
        found.append(
            f"AUC {format_score(evaluation['auc'])}, by commit count alone "
            f"{format_score(evaluation['auc_by_commit_count'])}; Brier {format_number(evaluation['brier'])}, base rate "
            f"alone {format_number(evaluation['brier_of_base_rate'])}."
        )
        gap = evaluation["calibration"]["expected_calibration_error"]
        bins = count_noun(len(evaluation["calibration"].get("bins", [])), "bin")
        found.append(f"Calibration: forecast and outcome differ by {format_score(gap)} on average over {bins}.")
    elif "auc" in evaluation:
        found.append(
            f"Backtest at {inline(evaluation['as_of_share'])} of the history: AUC {format_score(evaluation['auc'])}; "
            f"later fixes touched {number(evaluation['fixed'])} of {count_noun(evaluation['files'], 'file')}."
        )
    else:
        found.append("History could not check this order: use it only as a starting point.")
    return found
