"""Findings of an inventory, and facts to remember."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from fireswarm import Fact, Signal, count_noun, format_size

from .assemble import UNKNOWN_TEXT

SUBJECTS_A_SIGNAL = 10
"""Maximum number of signals of one name: the strongest are raised; the totals count all."""

LONG_FILE_LINES = 400
LARGE_FILE_BYTES = 1_000_000
COMPLEX_FUNCTION = 10

LEAST_DENSITY_LINES = 100
"""Minimum lines of a density of markers: a marker in three lines is no density of 333 per 1,000."""


def signals_of(inventory: dict[str, Any]) -> tuple[Signal, ...]:
    """Return every signal by its formula in ``references/signals.md``, strongest first within a name."""
    found = [
        *_broken_links(inventory), *_large_files(inventory), *_complex_code(inventory), *_duplicates(inventory),
        *_folder_signals(inventory["totals"], inventory["folder"]["name"]),
    ]  # fmt: skip
    found.sort(key=lambda signal: (signal.name, -signal.strength, signal.subject))
    seen: Counter[str] = Counter()
    kept: list[Signal] = []
    for signal in found:
        seen[signal.name] += 1
        if seen[signal.name] <= SUBJECTS_A_SIGNAL:
            kept.append(signal)
    return tuple(kept)


def _signal(name: str, strength: float, subject: str, note: str) -> Signal:
    return Signal(name=name, strength=round(min(1.0, max(0.0, strength)), 4), subject=subject, note=note)


def _broken_links(inventory: dict[str, Any]) -> list[Signal]:
    found: list[Signal] = []
    for record in inventory["files"]:
        broken = [link for link in record.get("links", ()) if link.get("ok") is False]
        if broken:
            first = f"line {broken[0]['line']}: {broken[0]['target']}"
            found.append(
                _signal("broken_link", 1 - 0.5 ** len(broken), record["path"], f"{len(broken):,} broken, {first}")
            )
    return found


def _large_files(inventory: dict[str, Any]) -> list[Signal]:
    found: list[Signal] = []
    for record in inventory["files"]:
        lines = record.get("lines", 0)
        if "complexity" in record and lines > LONG_FILE_LINES:
            found.append(_signal("large_file", 1 - LONG_FILE_LINES / lines, record["path"], count_noun(lines, "line")))
        elif record["bytes"] > LARGE_FILE_BYTES:
            size = record["bytes"]
            found.append(_signal("large_file", 1 - LARGE_FILE_BYTES / size, record["path"], format_size(size)))
    return found


def _complex_code(inventory: dict[str, Any]) -> list[Signal]:
    found: list[Signal] = []
    for record in inventory["files"]:
        worst = record.get("worst_complexity") or 0
        if record.get("measured") == "cyclomatic" and worst > COMPLEX_FUNCTION:
            note = f"{record['worst_function']} has cyclomatic complexity {worst}"
            found.append(_signal("complex_code", 1 - COMPLEX_FUNCTION / worst, record["path"], note))
    return found


def _duplicates(inventory: dict[str, Any]) -> list[Signal]:
    total = inventory["totals"]["bytes"] or 1
    return [
        _signal(
            "duplicate_content",
            (group["bytes"] * (len(group["paths"]) - 1) / total) ** 0.5,
            group["paths"][0],
            f"same content as {', '.join(group['paths'][1:4])}",
        )
        for group in inventory["duplicates"]
    ]


def _folder_signals(totals: dict[str, Any], name: str) -> list[Signal]:
    found: list[Signal] = []
    if totals["markers"] and totals["lines"] >= LEAST_DENSITY_LINES:
        density = 1000 * totals["markers"] / totals["lines"]
        note = f"{count_noun(totals['markers'], 'marker')} in {count_noun(totals['lines'], 'line')}"
        found.append(_signal("todo_density", density / 10, name, note))
    if totals["untested_lines"]:
        share = totals["untested_lines"] / totals["source_lines"]
        sources, untested = count_noun(totals["source_lines"], "source line"), totals["untested_lines"]
        note = f"No test reaches {sources if untested == totals['source_lines'] else f'{untested:,} of {sources}'}"
        found.append(_signal("no_tests", share, name, note))
    return found


def facts_of(inventory: dict[str, Any], task_id: str, now: datetime) -> tuple[Fact, ...]:
    """Return a bounded set of facts about the folder, in its bucket, with the keywords that recall them."""
    folder, totals, history = inventory["folder"], inventory["totals"], inventory["history"]
    values: dict[str, Any] = {
        "files": totals["files"],
        "bytes": totals["bytes"],
        "lines": totals["lines"],
        "source_files": totals["source_files"],
        "test_files": totals["test_files"],
        "documents": totals["documents"],
        "todo_markers": totals["markers"],
        "broken_links": totals["broken_links"],
        "duplicate_groups": totals["duplicate_groups"],
        "languages": {entry["name"]: entry["lines"] for entry in inventory["languages"][:5]},
        "largest_files": [record["path"] for record in largest_files(inventory, 3)],
        "top_keywords": [entry["term"] for entry in inventory["keywords"][:8]],
    }
    if not totals["files"]:
        values = {"files": 0}
    elif folder["listed_by"] == "name":
        values = {name: values[name] for name in ("bytes", "lines") if totals["text_files"] or name == "bytes"}
    elif totals["source_lines"]:
        values["untested_share"] = round(totals["untested_lines"] / totals["source_lines"], 3)
    if history is not None:
        values |= {"git_head": history["head"], "commits": history["commits_read"]}
    shared = ["folder", "inventory", folder["bucket"], folder["name"].lower()]
    shared += [entry["name"].lower() for entry in inventory["languages"][:3] if entry["name"] != UNKNOWN_TEXT]
    shared += [entry["term"] for entry in inventory["keywords"][:5]]
    return tuple(
        Fact(
            bucket=folder["bucket"],
            key=key,
            value=value,
            keywords=tuple(dict.fromkeys([*shared, *key.split("_")])),
            source=task_id,
            learned_at=now,
        )
        for key, value in values.items()
    )


def largest_files(inventory: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """The files with the most bytes."""
    return sorted(inventory["files"], key=lambda record: (-record["bytes"], record["path"]))[:most]
