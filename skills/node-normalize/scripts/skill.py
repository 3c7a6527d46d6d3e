"""Record the request once: later steps must keep to this snapshot."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm import (
    Question,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    format_size,
    is_secret_file,
    pipelines,
    read_regular_file,
)

MAX_FILES = 50
MAX_BYTES = 1_000_000
CODE = (".ts", ".js")
"""Suffixes of code, which may have names like secrets: `Api.credentials.ts` only declares the fields of a login."""

SUFFIXES = (*CODE, ".md", ".markdown", ".txt", ".yaml", ".yml", ".json")


def run(request: SkillRequest) -> SkillResult:
    """Return the snapshot: correlation id, name, source with its hashes, and the bounds of the run."""
    given = {**request.context, **request.answers}
    named = str(given.get("source") or next((item.uri for item in request.attachments), ""))
    if not named:
        return _ask("From which file or folder should the node be made?")
    place = Path(unquote(urlsplit(named).path)) if named.startswith("file://") else Path(named).expanduser()
    if not place.exists():
        return _ask(f"There is no {named}. From which file or folder should the node be made?")
    if nodes := _nodes(place):
        chosen = str(given.get("node") or (nodes[0] if len(nodes) == 1 else ""))
        if chosen not in nodes:
            question = Question(name="node", description=f"Which node of {named}?", allowed={"enum": nodes})
            told = f"{named} is a package with {count_noun(len(nodes), 'node')}"
            return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
        place = place / chosen
    files = _files(place)
    if not files:
        return _ask(f"{named} has no {', '.join(SUFFIXES)} files. Which file or folder is it?")
    size = sum(file["bytes"] for file in files)
    if len(files) > MAX_FILES or size > MAX_BYTES:
        held = count_noun(len(files), "file")
        told = f"{named} has {held} with {size:,} bytes; the limits are {MAX_FILES} and {MAX_BYTES:,}"
        return SkillResult.failure(f"{told}: name a smaller folder or one file")
    name = pipelines.identifier(str(given.get("name") or place.name.split(".")[0]))
    carried = pipelines.Carried.of(request)
    carried.write_json(
        "request_snapshot.json",
        {
            "correlation_id": str(given.get("correlation_id") or request.task_id),
            "objective": str(given.get("objective") or request.objective),
            "requested_at": request.now.isoformat(timespec="seconds"),
            "node_name": name,
            "source": {"path": str(place.resolve()), "files": files},
            "source_type": given.get("source_type"),
            "repository": given.get("repository"),
            "limits": request.limits.model_dump(),
        },
        "the request as it was submitted; it never changes",
    )
    return SkillResult(
        summary=f"{name}: {count_noun(len(files), 'file')}, {format_size(size)}",
        artifacts=carried.artifacts(),
        confidence=1.0,
    )


def _nodes(place: Path) -> list[str]:
    """Return the built nodes that a package names in its package.json, or an empty list."""
    try:
        package = json.loads(read_regular_file(place / "package.json", MAX_BYTES))
        named = [name for name in package["n8n"]["nodes"] if isinstance(name, str)]
    except (OSError, ValueError, LookupError, TypeError):
        return []
    return sorted(name for name in named if (place / name).resolve().is_relative_to(place.resolve()))


def _files(place: Path) -> list[dict[str, Any]]:
    """List files with size and hash, sorted. Skips hidden files of a folder and files that may hold secrets."""
    found = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    listed: list[dict[str, Any]] = []
    for path in found:
        name = path.name if path == place else path.relative_to(place).as_posix()
        if path.suffix.lower() not in SUFFIXES or any(part.startswith(".") for part in Path(name).parts):
            continue
        if path != place and path.suffix.lower() not in CODE and is_secret_file(path.name):
            continue
        try:
            content = read_regular_file(path, MAX_BYTES)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            listed.append({"name": name, "bytes": path.stat().st_size, "sha256": ""})  # too large to be read
        else:
            listed.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    return listed


def _ask(text: str) -> SkillResult:
    question = Question(name="source", description=text)
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary=text, questions=(question,))
