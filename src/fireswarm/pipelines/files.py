"""The files of a pipeline run. Each step gets the files of the earlier steps, and passes them on together with its own.

A file is an artifact of type ``pipeline_file`` with its path as its name, so that the names in the blob store are
those shown to an operator: ``inferred_schema.json``, ``project/nodes/bookmarks/node.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm.contracts.regular_file import read_regular_file, write_without_links
from fireswarm.contracts.skills.artifact import PIPELINE_FILE, WORKDIR_URI, Artifact
from fireswarm.contracts.skills.skill import SkillRequest
from fireswarm.errors import InvalidInput

PROJECT = "project/"
SOURCES = "source_bundle/"

MAX_FILES = 200
MAX_FILE_BYTES = 20_000_000
"""The recording of a node with 2,000 operations, a document of 1,200, and a patch that contains either, fit in."""

MAX_READ_BYTES = 100_000_000


def safe_path(name: str) -> str:
    """Return *name* as a relative path with slashes. Raises InvalidInput if it is outside its folder or empty."""
    path = PurePosixPath(name)
    odd = any(not part.isprintable() or "\\" in part or ":" in part for part in path.parts)
    if not path.parts or name.endswith("/") or path.is_absolute() or {"..", ".git"} & set(path.parts) or odd:
        raise InvalidInput(f"{name!r} is not a path inside the run's folder")
    return str(path)


@dataclass(slots=True)
class Carried:
    """Files by path. ``given`` are from earlier steps, ``made`` are from this step."""

    workdir: Path
    given: dict[str, Artifact] = field(default_factory=dict)
    made: dict[str, Artifact] = field(default_factory=dict)

    @classmethod
    def of(cls, request: SkillRequest) -> Carried:
        """Collect the files of *request*; of the versions that children made, the last one wins."""
        given = {artifact.name: artifact for artifact in request.artifacts if artifact.type == PIPELINE_FILE}
        for child in request.children:
            for artifact in child.artifacts:
                is_new = artifact.source_task_id in (None, child.task_id) or artifact.name not in given
                if artifact.type == PIPELINE_FILE and is_new:
                    given[artifact.name] = artifact
        return cls(request.workdir, given)

    def source(self, request: SkillRequest) -> Path:
        """Return the file or folder from which the run makes a node, as the snapshot names it.

        Raises InvalidInput if it is not in the place that the context of *request* names.
        """
        place, named = Path(self.json("request_snapshot.json")["source"]["path"]), request.context.get("source")
        if isinstance(named, str) and named:
            given = _local_path(named).resolve()
            if given.exists() and not place.resolve().is_relative_to(given):
                raise InvalidInput(f"the snapshot names {place}, which is not in {named}: submit the pipeline again")
        return place

    def __contains__(self, name: str) -> bool:
        """Return True if the file exists."""
        return name in self.made or name in self.given

    def names(self, prefix: str = "") -> list[str]:
        """Return the paths that begin with *prefix*, sorted."""
        return sorted(name for name in {**self.given, **self.made} if name.startswith(prefix))

    def text(self, name: str) -> str:
        """Return a file's content. Raises InvalidInput if an earlier step did not write it."""
        artifact = self.made.get(name) or self.given.get(name)
        if artifact is None:
            raise InvalidInput(f"{name} is missing: the step that creates it did not run or did not write it")
        if artifact.value is not None:
            return str(artifact.value)
        uri = artifact.uri or ""
        path = (
            self.workdir / safe_path(uri.removeprefix(WORKDIR_URI)) if uri.startswith(WORKDIR_URI) else _local(artifact)
        )
        return read_regular_file(path, MAX_READ_BYTES).decode("utf-8")

    def json(self, name: str) -> Any:
        """Return a file's content, parsed as JSON."""
        return json.loads(self.text(name))

    def tree(self, prefix: str) -> dict[str, str]:
        """Return contents by path below *prefix*, with the prefix removed."""
        return {name.removeprefix(prefix): self.text(name) for name in self.names(prefix)}

    def write(self, name: str, content: str, summary: str = "") -> None:
        """Write a file. Raises InvalidInput for a path outside the folder, and above the limits of size and number."""
        name = safe_path(name)
        size = len(content.encode())
        if size > MAX_FILE_BYTES:
            raise InvalidInput(f"{name} has {size:,} bytes; {MAX_FILE_BYTES:,} are allowed")
        if len({*self.given, *self.made, name}) > MAX_FILES:
            raise InvalidInput(f"file limit reached: a run may write at most {MAX_FILES} files ({name})")
        self.workdir.mkdir(parents=True, exist_ok=True)
        _write(self.workdir, name, content)
        self.made[name] = Artifact(
            type=PIPELINE_FILE, name=name, uri=f"{WORKDIR_URI}{name}", summary=summary, size_bytes=size
        )

    def write_json(self, name: str, content: Any, summary: str = "") -> None:
        """Write a JSON file in canonical form: the same content gives the same bytes."""
        self.write(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n", summary)

    def write_project(self, files: Mapping[str, str]) -> None:
        """Write files of the project."""
        for path, content in files.items():
            self.write(f"{PROJECT}{path}", content)

    def artifacts(self) -> tuple[Artifact, ...]:
        """Return all files to pass on: the new ones, and the given ones that were not replaced."""
        return tuple({**self.given, **self.made}.values())


def lay_out(files: Mapping[str, str], folder: Path) -> None:
    """Write *files* below *folder*. Raises InvalidInput for a path outside, or with a link in it."""
    for name, content in files.items():
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, safe_path(name), content)


def _write(folder: Path, name: str, content: str) -> None:
    try:
        write_without_links(folder, PurePosixPath(name).parts, content.encode())
    except OSError as error:
        why = f"{error.strerror}; no part of the path may be a link"
        raise InvalidInput(f"{name} cannot be written in {folder}: {why}") from error


def read_back(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Read the named files below *folder*; missing files are left out."""
    paths = {name: folder / name for name in names}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.is_file()}


def _local(artifact: Artifact) -> Path:
    if urlsplit(artifact.uri or "").scheme != "file":
        raise InvalidInput(f"{artifact.name} is at {artifact.uri}, which is not a local file")
    return _local_path(str(artifact.uri))


def _local_path(named: str) -> Path:
    """Return the path that a text names, which may be an address of a file."""
    return Path(unquote(urlsplit(named).path)) if named.startswith("file://") else Path(named).expanduser()
