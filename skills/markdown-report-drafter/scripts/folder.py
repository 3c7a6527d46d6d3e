"""The sections of a report on a folder: its content, findings, and likely trouble."""

from __future__ import annotations

from typing import Any

from .markdown import bullets, code, inline, number, table
from .sources import Source

SHOWN_LANGUAGES, SHOWN_FILES, SHOWN_FINDINGS = 8, 10, 12


def inventory_section(source: Source) -> str:
    """Totals, languages and the largest files."""
    content = source.content
    totals: dict[str, Any] = content.get("totals", {})
    rows = [
        ["Files", number(totals.get("files", 0))],
        ["Lines of text", number(totals.get("lines", 0))],
        ["Bytes", number(totals.get("bytes", 0))],
        ["Source files, without tests", f"{number(totals.get('source_files', 0))}"],
        ["Test files", number(totals.get("test_files", 0))],
        ["Source lines that no test reaches", number(totals.get("untested_lines", 0))],
        ["Open markers", number(totals.get("markers", 0))],
        ["Links, of them broken", f"{number(totals.get('links', 0))}, {number(totals.get('broken_links', 0))}"],
        ["Groups of identical files", number(totals.get("duplicate_groups", 0))],
    ]
    parts = ["## What is there", f"{_listing(content)} {source.cite}", table(["Measure", "Count"], rows, "lr")]
    languages = content.get("languages", [])[:SHOWN_LANGUAGES]
    if languages:
        lines = [
            [inline(entry["name"]), number(entry["files"]), number(entry["lines"]), number(entry["bytes"])]
            for entry in languages
        ]
        parts += [f"### Languages {source.cite}", table(["Language", "Files", "Lines", "Bytes"], lines, "lrrr")]
    largest = _largest(content)
    if largest:
        lines = [[code(entry["path"]), number(entry.get("lines") or 0), number(entry["bytes"])] for entry in largest]
        parts += [f"### Largest files {source.cite}", table(["File", "Lines", "Bytes"], lines, "lrr")]
    return "\n\n".join(parts)


def risk_section(source: Source) -> str:
    """Return the highest scores with their bands, and the known error of the scores."""
    content = source.content
    scores: list[dict[str, Any]] = content.get("scores", [])[:SHOWN_FILES]
    if not scores:
        return f"## Where trouble is likely\n\nThere was no file to score. {source.cite}"
    rows = [
        [
            str(place),
            code(entry["path"]),
            f"{entry['score']:.2f}",
            f"{entry['low']:.2f} to {entry['high']:.2f}",
            f"{entry['top_share']:.0%}",
            inline("; ".join(entry["why"])),
        ]
        for place, entry in enumerate(scores, start=1)
    ]
    parts = [
        "## Where trouble is likely",
        f"{number(content.get('files', 0))} files were scored by {inline(content.get('method', ''))}. "
        f"A score is the {inline(content.get('score_means', ''))}. Bands: {inline(content.get('bands', ''))}. "
        f"*In the top ten* is the share of those draws or refits that put the file there. {source.cite}",
        table(["#", "File", "Score", "Band", "In the top ten", "Why"], rows, "rlrrrl"),
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
    extent = f"{shown} of {total}" if shown < total else f"{total}"
    return f"### {title} ({extent}) {source.cite}"


def _listing(content: dict[str, Any]) -> str:
    folder: dict[str, Any] = content.get("folder", {})
    text = f"{code(folder.get('name', 'The folder'))} was listed by {inline(folder.get('listed_by', 'name'))}"
    history = content.get("history") or content.get("git")
    if history:
        text += (
            f" at commit {code(str(history.get('head', ''))[:12])}, with {number(history['commits_read'])} commits read"
        )
    left = folder.get("left_out") or {}
    if left:
        text += "; left out: " + ", ".join(f"{count} {inline(name.replace('_', ' '))}" for name, count in left.items())
    return text + "."


def _largest(content: dict[str, Any]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = content.get("files") or content.get("largest_files", [])
    return sorted(files, key=lambda record: (-record["bytes"], record["path"]))[:SHOWN_FILES]


def _trust(content: dict[str, Any]) -> list[str]:
    evaluation: dict[str, Any] = content.get("evaluation", {})
    found = [f"Features: {inline(', '.join(content.get('features', [])) or 'none')}."]
    if content.get("why_not_supervised"):
        found.append(f"Not learned from history: {inline(content['why_not_supervised'])}.")
    if "brier" in evaluation:
        found.append(
            f"Trained on {number(evaluation['train_files'])} files ({evaluation['train_fixed']} fixed), judged on "
            f"{number(evaluation['held_out_files'])} later ones ({evaluation['held_out_fixed']} fixed)."
        )
        found.append(
            f"AUC {evaluation['auc']:.2f}, by commit count alone {evaluation['auc_by_commit_count']:.2f}; "
            f"Brier {evaluation['brier']:.3f}, base rate alone {evaluation['brier_of_base_rate']:.3f}."
        )
        gap = evaluation["calibration"]["expected_calibration_error"]
        found.append(f"Calibration: forecast and outcome differ by {gap:.2f} on average over five bins.")
    elif "auc" in evaluation:
        found.append(
            f"Backtest at {inline(evaluation['as_of_share'])} of the history: AUC {evaluation['auc']:.2f} for "
            f"{evaluation['fixed']} of {evaluation['files']} files that a later fix touched."
        )
    else:
        found.append("History could not check this order: use it only as a starting point.")
    return found
