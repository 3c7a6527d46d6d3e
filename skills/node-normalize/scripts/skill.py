"""Record the request once: later steps must keep to this snapshot."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm import (
    Question,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    errors,
    format_size,
    is_secret_file,
    pipelines,
    read_branch,
    read_regular_file,
)

MAX_FILES = 150
MAX_BYTES = 20_000_000
"""Of a file, and of all files. The document of GitHub's API has 13 MB."""

MAX_ARCHIVE_BYTES = 100_000_000
CODE = (".ts", ".js")
"""Suffixes of code, which may have names like secrets: `Api.credentials.ts` only declares the fields of a login."""

SUFFIXES = (*CODE, ".md", ".markdown", ".txt", ".html", ".htm", ".yaml", ".yml", ".json")


def run(request: SkillRequest) -> SkillResult:
    """Return the snapshot: correlation id, name, source with its hashes, and the bounds of the run."""
    given = {**request.context, **request.answers}
    named = str(given.get("source") or next((item.uri for item in request.attachments), ""))
    if not named:
        return _ask("From which file or folder should the node be made?")
    place = Path(unquote(urlsplit(named).path)) if named.startswith("file://") else Path(named).expanduser()
    if not place.exists():
        return _ask(f"There is no {named}. From which file or folder should the node be made?")
    try:
        if (repository := given.get("repository")) and not request.constraints.get("read_only"):
            read_branch(Path(str(repository)).expanduser().resolve())
        nodes = _nodes(place, request.workdir)
    except (errors.GitFailed, errors.InvalidInput) as error:
        return SkillResult.failure(str(error))
    chosen = str(given.get("node") or (nodes[0] if len(nodes) == 1 else "")) if nodes else ""
    if nodes and chosen not in nodes:
        question = Question(name="node", description=f"Which node of {named}?", allowed={"enum": nodes})
        told = f"{named} is a package with {count_noun(len(nodes), 'node')}"
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
    is_archive = pipelines.is_archive(place)
    if chosen and not is_archive:
        place = place / chosen
        if not place.is_file():
            return SkillResult.failure(f"{named} lists {chosen}, which is not there: build the package first")
    files = [_listed(place, place.name, MAX_ARCHIVE_BYTES)] if is_archive else _files(place)
    if not files:
        return _ask(f"{named} has no {', '.join(SUFFIXES)} files. Which file or folder is it?")
    size = sum(file["bytes"] for file in files)
    if not is_archive and (len(files) > MAX_FILES or size > MAX_BYTES):
        held = count_noun(len(files), "file")
        told = f"{named} has {held} with {size:,} bytes; the limits are {MAX_FILES} and {MAX_BYTES:,}"
        return SkillResult.failure(f"{told}: name a smaller folder or one file")
    name = pipelines.identifier(str(given.get("name") or Path(chosen or place.name).name.split(".")[0]))
    carried = pipelines.Carried.of(request)
    carried.write_json(
        "request_snapshot.json",
        {
            "correlation_id": str(given.get("correlation_id") or request.task_id),
            "objective": str(given.get("objective") or request.objective),
            "requested_at": request.now.isoformat(timespec="seconds"),
            "node_name": name,
            "source": {"path": str(place.resolve()), "files": files, **({"node": chosen} if chosen else {})},
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


def _nodes(place: Path, workdir: Path) -> list[str]:
    """Return the nodes of a package, which may be a tarball; [] for another source. Raises InvalidInput."""
    if not pipelines.is_archive(place):
        return pipelines.listed_nodes(place)
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        nodes = pipelines.listed_nodes(pipelines.unpack(place, Path(folder)))
    if not nodes:
        raise errors.InvalidInput(f"the package.json of {place.name} lists no nodes")
    return nodes


def _files(place: Path) -> list[dict[str, Any]]:
    """List files with size and hash, sorted.

    Leaves out hidden ones, links out of the folder, possible secrets, and what may not be read.
    """
    top = place.resolve()
    inside = (path for path in place.rglob("*") if path.is_file() and path.resolve().is_relative_to(top))
    found = [place] if place.is_file() else sorted(inside)
    listed: list[dict[str, Any]] = []
    for path in found:
        name = path.name if path == place else path.relative_to(place).as_posix()
        if path.suffix.lower() not in SUFFIXES or any(part.startswith(".") for part in Path(name).parts):
            continue
        if path != place and path.suffix.lower() not in CODE and is_secret_file(path.name):
            continue
        with contextlib.suppress(PermissionError):
            listed.append(_listed(path, name, MAX_BYTES))
    return listed


def _listed(path: Path, name: str, most: int) -> dict[str, Any]:
    """Return name, size and hash of a file; a file with more than *most* bytes has no hash."""
    try:
        content = read_regular_file(path, most)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        return {"name": name, "bytes": path.stat().st_size, "sha256": ""}
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _ask(text: str) -> SkillResult:
    question = Question(name="source", description=text)
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary=text, questions=(question,))
