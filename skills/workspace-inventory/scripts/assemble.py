"""Assemble the inventory of a folder from the records of its files; sharding does not change the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .content import Record
from .gitlog import History
from .kinds import is_code, is_prose
from .terms import weigh_terms
from .testmap import map_tests

UNKNOWN_TEXT = "Text of unknown type"
"""Name in place of a language for a text whose name has no known ending."""

MOST_LISTED = 50
"""Maximum entries in a list of findings (duplicates, broken links); the counts are complete."""


def assemble(folder: dict[str, Any], records: list[Record], history: History | None) -> dict[str, Any]:
    """Build the inventory of *folder* from its files' *records* and git *history*."""
    records = sorted(records, key=lambda record: record["path"])
    tested = map_tests(records)
    if history is not None:
        _add_churn(records, history)
    terms = (record["terms"] for record in records if record.get("terms"))
    broken = [
        {"path": record["path"], "line": link["line"], "target": link["target"]}
        for record in records
        for link in record.get("links", ())
        if link.get("ok") is False
    ]
    duplicates = _duplicates(records)
    return {
        "folder": folder,
        "totals": _totals(records, tested, broken, duplicates),
        "languages": _grouped(
            [r for r in records if "lines" in r and r["bytes"]], lambda record: record["language"] or UNKNOWN_TEXT
        ),
        "binaries": _grouped([r for r in records if "format" in r], lambda record: record["format"]),
        "types": _grouped(records, lambda record: record["mime"]),
        "files": records,
        "tests": tested,
        "duplicates": duplicates[:MOST_LISTED],
        "broken_links": broken[:MOST_LISTED],
        "keywords": weigh_terms(terms, 25),
        "history": None if history is None else _history(history),
    }


def _totals(
    records: list[Record], tested: dict[str, list[str]], broken: list[Any], duplicates: list[dict[str, Any]]
) -> dict[str, Any]:
    code = [record for record in records if is_code(record["language"]) and record["kind"] == "text"]
    sources = [record for record in code if not record.get("test")]
    markers = Counter[str]()
    for record in records:
        markers.update(marker["kind"] for marker in record.get("markers", ()))
    return {
        "files": len(records),
        "bytes": sum(record["bytes"] for record in records),
        "lines": sum(record.get("lines", 0) for record in records),
        "text_files": sum(record["kind"] == "text" for record in records),
        "empty_files": sum(not record["bytes"] for record in records),
        "binary_files": sum(record["kind"] == "binary" for record in records),
        "documents": sum(is_prose(record["language"]) for record in records),
        "source_files": len(sources),
        "source_lines": sum(record["lines"] for record in sources),
        "test_files": len(code) - len(sources),
        "tested_files": len(tested),
        "untested_lines": sum(record["lines"] for record in sources if "test_distance" not in record),
        "complexity": sum(record.get("complexity") or 0 for record in sources),
        "markers": sum(record.get("markers_in_all", len(record.get("markers", ()))) for record in records),
        "markers_by_kind": dict(sorted(markers.items())),
        "headings": sum(record.get("headings_in_all", len(record.get("headings", ()))) for record in records),
        "links": sum(record.get("links_in_all", len(record.get("links", ()))) for record in records),
        "broken_links": len(broken),
        "duplicate_groups": len(duplicates),
        "duplicate_bytes": sum(group["bytes"] * (len(group["paths"]) - 1) for group in duplicates),
    }


def _grouped(records: list[Record], key: Callable[[Record], str]) -> list[dict[str, Any]]:
    """Files and bytes by *key*, and lines if there is text, largest first."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    found = [
        {"name": name, "files": len(group), "bytes": sum(record["bytes"] for record in group)}
        | ({"lines": sum(record.get("lines", 0) for record in group)} if any("lines" in r for r in group) else {})
        for name, group in groups.items()
    ]
    return sorted(found, key=lambda entry: (-entry.get("lines", 0), -entry["bytes"], entry["name"]))


def _duplicates(records: list[Record]) -> list[dict[str, Any]]:
    """Return files with the same content, except empty ones."""
    by_hash: dict[str, list[Record]] = {}
    for record in records:
        if record["bytes"] and record.get("sha256"):
            by_hash.setdefault(record["sha256"], []).append(record)
    groups = [
        {"sha256": digest, "bytes": same[0]["bytes"], "paths": [record["path"] for record in same]}
        for digest, same in by_hash.items()
        if len(same) > 1
    ]
    return sorted(groups, key=lambda group: (-group["bytes"] * (len(group["paths"]) - 1), group["paths"]))


def _add_churn(records: list[Record], history: History) -> None:
    """Add commits, changed lines, authors, fixes and the last date to each record that git knows."""
    by_path = {record["path"]: record for record in records}
    authors: dict[str, set[int]] = {}
    for commit in history.commits:
        for path, added, deleted in commit.touches:
            record = by_path.get(path)
            if record is None:
                continue
            if "commits" not in record:
                record |= {"commits": 0, "added": 0, "deleted": 0, "fixes": 0, "last_commit": _iso(commit.time)}
            record["commits"] += 1
            record["added"] += added
            record["deleted"] += deleted
            record["fixes"] += int(commit.fix)
            record["first_commit"] = _iso(commit.time)
            authors.setdefault(path, set()).add(commit.author)
    for path, seen in authors.items():
        by_path[path]["authors"] = len(seen)


def _history(history: History) -> dict[str, Any]:
    """Return the history for the predictor: oldest commit first, paths and authors by number."""
    paths = sorted({path for commit in history.commits for path, _, _ in commit.touches})
    number = {path: index for index, path in enumerate(paths)}
    commits: list[dict[str, Any]] = [
        {
            "sha": commit.sha[:12],
            "time": commit.time,
            "author": commit.author,
            "fix": commit.fix,
            "files": [[number[path], added, deleted] for path, added, deleted in commit.touches],
        }
        for commit in reversed(history.commits)
    ]
    return {
        "head": history.head,
        "branch": history.branch,
        "commits_read": len(commits),
        "fix_commits": sum(commit.fix for commit in history.commits),
        "authors": len({commit.author for commit in history.commits}),
        "first": _iso(commits[0]["time"]),
        "last": _iso(commits[-1]["time"]),
        "truncated": history.truncated,
        "shallow": history.shallow,
        "paths": paths,
        "commits": commits,
        "splits": history.splits,
    }


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
