"""Inventory of a folder: list, read, measure, and return one artifact; large folders are split into several tasks."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm import (
    Artifact,
    PlannedTask,
    Question,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    format_counts,
    format_extent,
    format_size,
    read_artifact_object,
)

from .assemble import assemble
from .content import Record, read_record
from .findings import facts_of, largest_files, signals_of
from .gitlog import read_history
from .listing import Listing, in_shard, list_files

SHARD_FILES = 400
"""Default number of files per task: about four seconds of work for code (measured: 3.3 to 5.8 s a shard)."""

LEFT_OUT = {
    "excluded_folder": "excluded folder", "listed_but_missing": "listed but missing file",
    "over_max_files": "file beyond the limit", "special_file": "special file", "submodule": "submodule",
    "symlink": "symbolic link", "undecodable_name": "undecodable name", "unreadable": "unreadable file",
    "unreadable_folder": "unreadable folder", "vanished": "vanished file",
}  # fmt: skip
"""Nouns for what a listing leaves out, by reason."""

SHOWN_KINDS = 6
"""Maximum kinds of binary files in the summary."""

MOST_SHARDS = 16
MAX_FILES = 20_000
MAX_COMMITS = 2_000


@dataclass(frozen=True)
class Limits:
    """Limits of the inventory, from the request's context."""

    shard_files: int
    max_files: int
    max_commits: int


LISTED_BY = {"git": "git", "walk": "a walk through the folders"}

FOLDER_KEYS = ("name", "path", "bucket", "listed_by", "left_out", "left_out_text")


class Refused(Exception):
    """The request cannot be carried out; the message says what to change."""


def run(request: SkillRequest) -> SkillResult:
    """Inventory ``context.path``, or one shard of it if ``context.shard`` is set."""
    given = request.context.get("path") or request.answers.get("path")
    if not given:
        ask = Question(name="path", description="Absolute path of the folder to inventory", type="path")
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="No folder was given.", questions=(ask,))
    try:
        place = place_at(str(given))
        limits = limits_of(request.context)
        if place.is_file():
            listing = Listing("name", [place.name])
            return _finish(request, place, listing, limits, read_all(place.parent, listing.paths, listing))
        root = place
        listing = list_files(root, max_files=limits.max_files)
        if "shard" in request.context:
            return _inventory_shard(request, root, listing)
        if request.children:
            return _merge(request, root, listing, limits)
        if len(listing.paths) > limits.shard_files:
            return _share_out(request, root, listing, limits)
        return _finish(request, root, listing, limits, read_all(root, listing.paths, listing))
    except Refused as reason:
        return SkillResult.failure(str(reason))


def place_at(given: str) -> Path:
    """Return the folder or single file that *given* (a path or ``file://`` URI) names."""
    if given.startswith("file://"):
        given = unquote(urlsplit(given).path)
    path = Path(os.path.realpath(Path(given).expanduser()))
    remedy = "Give the absolute path of a folder on this machine as context.path."
    if not path.exists():
        raise Refused(f"There is nothing at {given}. {remedy}")
    if not path.is_dir() and not path.is_file():
        raise Refused(f"{given} is neither a folder nor a regular file. {remedy}")
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        raise Refused(f"{given} may not be read by this process. Grant it read access or choose another folder.")
    return path


def bucket_of(place: Path) -> str:
    """Return the bucket of facts about a folder or file: the same for the same real path."""
    digest = hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return ("folder:" if place.is_dir() else "file:") + digest


def limits_of(context: dict[str, Any]) -> Limits:
    """Read the limits; raises Refused for a value that is not a whole number above zero."""
    read: dict[str, int] = {}
    for name, usual in (("shard_files", SHARD_FILES), ("max_files", MAX_FILES), ("max_commits", MAX_COMMITS)):
        value = context.get(name, usual)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise Refused(f"context.{name} is {value!r}; it must be a whole number above zero.")
        read[name] = value
    return Limits(**read)


def read_all(root: Path, paths: list[str], listing: Listing) -> list[Record]:
    """Describe every file, counting those that could not be read."""
    records: list[Record] = []
    for path in paths:
        record = read_record(root, path)
        if isinstance(record, str):
            listing.leave_out(record)
        else:
            records.append(record)
    return records


def _share_out(request: SkillRequest, root: Path, listing: Listing, limits: Limits) -> SkillResult:
    count = min(MOST_SHARDS, -(-len(listing.paths) // limits.shard_files))
    context = {key: request.context[key] for key in ("max_files", "shard_files") if key in request.context}
    tasks = tuple(
        PlannedTask(
            key=f"shard-{index + 1}",
            assigned_to=request.role,
            skill="workspace-inventory",
            objective=f"Inventory part {index + 1} of {count} of the folder {root.name}.",
            context={**context, "path": str(root), "shard": {"index": index, "count": count}},
            handoff_reason=f"{count_noun(len(listing.paths), 'file')} are more than one task reads",
            expected_outcome="an inventory_shard artifact",
        )
        for index in range(count)
    )
    summary = f"{count_noun(len(listing.paths), 'file')} in {root.name}: distributed to {count_noun(count, 'task')}."
    return SkillResult(state=SkillState.DELEGATING, summary=summary, tasks=tasks)


def _inventory_shard(request: SkillRequest, root: Path, listing: Listing) -> SkillResult:
    shard: Any = request.context["shard"]
    if not isinstance(shard, dict) or not {"index", "count"} <= set(shard):
        raise Refused('context.shard must look like {"index": 0, "count": 4}.')
    index, count = int(shard["index"]), int(shard["count"])
    if not 0 <= index < count:
        raise Refused(f"context.shard.index {index} is not between 0 and {count - 1}.")
    failures = Listing(listing.method, [])
    records = read_all(root, in_shard(listing.paths, index, count), failures)
    content = {"index": index, "count": count, "files": records, "left_out": failures.left_out}
    artifact = written(
        request, content, "inventory_shard", f"inventory-{index + 1}-of-{count}.json", count_noun(len(records), "file")
    )
    value = {"index": index, "count": count, "files": len(records)}
    summary = f"Read {count_noun(len(records), 'file')}: part {index + 1} of {count} of {root.name}."
    return SkillResult(summary=summary, artifacts=(artifact.model_copy(update={"value": value}),), confidence=1.0)


def _merge(request: SkillRequest, root: Path, listing: Listing, limits: Limits) -> SkillResult:
    records: list[Record] = []
    seen: set[int] = set()
    count = 0
    for child in request.children:
        for artifact in child.artifacts:
            if artifact.type == "inventory_shard":
                part = read_artifact_object(artifact)
                if "files" not in part or not isinstance(part["files"], list):
                    continue
                count = part["count"]
                if part["index"] not in seen:
                    seen.add(part["index"])
                    records.extend(part["files"])
                    for reason, number in part["left_out"].items():
                        listing.leave_out(reason, number)
    if not records and listing.paths:
        raise Refused(
            "No task returned its part of the inventory. Look at the shard tasks for the reason and start again."
        )
    missing = sorted(set(range(count)) - seen)
    if missing:
        listing.notes.append(f"parts {', '.join(str(index + 1) for index in missing)} of {count} are missing")
    return _finish(request, root, listing, limits, records)


def _finish(request: SkillRequest, place: Path, listing: Listing, limits: Limits, records: list[Record]) -> SkillResult:
    history = read_history(place, max_commits=limits.max_commits)
    folder = {
        "name": place.name or str(place),
        "path": str(place),
        "bucket": bucket_of(place),
        "listed_by": listing.method,
        "left_out": dict(sorted(listing.left_out.items())),
        "left_out_text": format_counts((count, LEFT_OUT[reason]) for reason, count in sorted(listing.left_out.items())),
        "notes": listing.notes,
        "as_of": request.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    inventory = assemble(folder, records, history)
    facts = facts_of(inventory, request.task_id, request.now)
    signals = signals_of(inventory)
    inventory["facts"] = [{"bucket": fact.bucket, "key": fact.key, "value": fact.value} for fact in facts]
    totals = inventory["totals"]
    summary = summary_of(inventory)
    artifact = written(request, inventory, "inventory", "inventory.json", summary)
    return SkillResult(
        summary=summary,
        artifacts=(artifact.model_copy(update={"value": digest_of(inventory)}),),
        signals=signals,
        insights=insights_of(inventory),
        facts=facts,
        confidence=_confidence(totals["files"], listing),
        next_recommended_actions=actions_of(inventory),
    )


def summary_of(inventory: dict[str, Any]) -> str:
    """Return one line: kind and size of a single file, or the totals of a folder above zero."""
    name, totals, folder = inventory["folder"]["name"], inventory["totals"], inventory["folder"]
    if not totals["files"]:
        left = f" Left out: {folder['left_out_text']}." if folder["left_out_text"] else ""
        return f"{name} has no files: there is nothing to report on.{left}"
    kinds = _kinds(inventory["binaries"])
    if folder["listed_by"] == "name":
        kind = inventory["binaries"][0]["name"] if inventory["binaries"] else count_noun(totals["lines"], "line")
        return f"{name}: {kind}, {format_size(totals['bytes'])}."
    figures = format_counts([
        (totals["files"], "file"), (totals["lines"], "line"), (totals["source_files"], "source file"),
        (totals["test_files"], "test file"), (totals["markers"], "open marker"),
        (totals["broken_links"], "broken link"),
    ])  # fmt: skip
    return f"{name}: {figures}, {format_size(totals['bytes'])}." + (f" Not text: {kinds}." if kinds else "")


def _kinds(binaries: list[dict[str, Any]]) -> str:
    """Return the kinds of binary files with their counts, the most frequent first."""
    ranked = sorted(binaries, key=lambda entry: (-entry["files"], entry["name"]))
    shown = [f"{entry['name']} ({entry['files']:,})" for entry in ranked[:SHOWN_KINDS]]
    more = len(ranked) - len(shown)
    return ", ".join([*shown, *([f"and {count_noun(more, 'other kind')}"] if more else [])])


def digest_of(inventory: dict[str, Any]) -> dict[str, Any]:
    """Return the small part of an inventory that is stored in documents; the file has the rest."""
    history = inventory["history"]
    return {
        "folder": {key: inventory["folder"][key] for key in FOLDER_KEYS},
        "totals": inventory["totals"],
        "languages": inventory["languages"][:10],
        "binaries": inventory["binaries"][:10],
        "keywords": [entry["term"] for entry in inventory["keywords"][:15]],
        "largest_files": [
            {key: record[key] for key in ("path", "bytes", "lines", "format") if key in record}
            for record in largest_files(inventory, 10)
        ],
        "git": None if history is None else {key: history[key] for key in ("head", "branch", "commits_read")},
        "facts": inventory["facts"],
    }


def insights_of(inventory: dict[str, Any]) -> tuple[str, ...]:
    """Return insights: main language, history, files left out."""
    folder, history = inventory["folder"], inventory["history"]
    found: list[str] = []
    if inventory["totals"]["files"] and folder["listed_by"] != "name":
        found += [f"Files were listed by {LISTED_BY[folder['listed_by']]}.", *_languages(inventory)]
    if inventory["keywords"]:
        found.append("Frequent words: " + ", ".join(entry["term"] for entry in inventory["keywords"][:8]) + ".")
    if history is not None:
        more = ", older ones were not read" if history["truncated"] or history["shallow"] else ""
        fixes = f"; {history['fix_commits']:,} read like fixes" if history["fix_commits"] else ""
        found.append(
            f"History: {count_noun(history['commits_read'], 'commit')} by {count_noun(history['authors'], 'author')}"
            f"{more}{fixes}."
        )
    elif found:
        found.append("No git history: churn, age and authors are unknown.")
    if folder["left_out_text"]:
        found.append(f"Left out: {folder['left_out_text']}.")
    return (*found, *(f"Note: {note}." for note in folder["notes"]))


def _languages(inventory: dict[str, Any]) -> list[str]:
    """Return a sentence about the language with the most lines, if there are lines."""
    languages, lines = inventory["languages"], inventory["totals"]["lines"]
    if not lines:
        return []
    first = languages[0]
    where = f"{format_extent(first['lines'], lines)} in {count_noun(first['files'], 'file')}"
    if 2 * first["lines"] <= lines:
        return [f"The language with the most lines is {first['name']}: {where}."]
    return [f"{'All' if first['lines'] == lines else 'Most'} lines are {first['name']}: {where}."]


def actions_of(inventory: dict[str, Any]) -> tuple[str, ...]:
    """Return recommended actions, based on the findings."""
    totals = inventory["totals"]
    found: list[str] = []
    if totals["broken_links"]:
        first = inventory["broken_links"][0]
        found.append(
            f"Repair {count_noun(totals['broken_links'], 'broken link')}, first {first['path']} line {first['line']}."
        )
    if totals["source_files"] and not totals["test_files"]:
        found.append("Add a first test: no test file was found.")
    if totals["duplicate_groups"]:
        groups = count_noun(totals["duplicate_groups"], "group")
        found.append(f"Look at {groups} of identical files.")
    return tuple(found)


def _confidence(files: int, listing: Listing) -> float:
    """Return the share of the listed files that were read."""
    there = len(listing.paths) + listing.left_out.get("over_max_files", 0)
    return round(min(1.0, files / there), 4) if there else 1.0


def written(request: SkillRequest, content: Any, kind: str, name: str, summary: str) -> Artifact:
    """Write *content* as JSON below the workdir and return the artifact that refers to it."""
    data = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    request.workdir.mkdir(parents=True, exist_ok=True)
    (request.workdir / name).write_bytes(data)
    return Artifact(
        type=kind,
        name=name,
        summary=summary,
        uri=f"workdir:{name}",
        mime="application/json",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
