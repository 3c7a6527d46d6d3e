"""The files of a pipeline run. Each step is given those of the steps before it, and hands on these and its own.

A file is an artifact of type ``pipeline_file`` with its path as its name, so that what lies in the blob store is what
an operator sees: ``inferred_schema.json``, ``source_bundle/Bookmarks.node.ts``, ``project/nodes/bookmarks/node.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillRequest
from fireswarm.errors import InvalidInput

FILE = "pipeline_file"
PROJECT = "project/"
SOURCES = "source_bundle/"
WORKDIR = "workdir:"

MAX_FILES = 100
MAX_FILE_BYTES = 1_000_000


def safe_path(name: str) -> str:
    """*name* as a relative path with slashes; InvalidInput for one that leads out of its folder or names none."""
    path = PurePosixPath(name)
    odd = any(not part.isprintable() or "\\" in part or ":" in part for part in path.parts)
    if not path.parts or name.endswith("/") or path.is_absolute() or {"..", ".git"} & set(path.parts) or odd:
        raise InvalidInput(f"{name!r} is not a path inside the run's folder")
    return str(path)


@dataclass(slots=True)
class Carried:
    """Files by path. ``given`` came from earlier steps, ``made`` are this step's."""

    workdir: Path
    given: dict[str, Artifact] = field(default_factory=dict)
    made: dict[str, Artifact] = field(default_factory=dict)

    @classmethod
    def of(cls, request: SkillRequest) -> Carried:
        """The files of *request*; the last artifact of a name counts."""
        found = [*request.artifacts, *(artifact for child in request.children for artifact in child.artifacts)]
        return cls(request.workdir, {artifact.name: artifact for artifact in found if artifact.type == FILE})

    def __contains__(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self.made or name in self.given

    def names(self, prefix: str = "") -> list[str]:
        """Paths that begin with *prefix*, sorted."""
        return sorted(name for name in {**self.given, **self.made} if name.startswith(prefix))

    def text(self, name: str) -> str:
        """A file's content; InvalidInput when there is none: the step before did not leave it."""
        artifact = self.made.get(name) or self.given.get(name)
        if artifact is None:
            raise InvalidInput(f"{name} is missing: the step that creates it did not run or did not write it")
        if artifact.value is not None:
            return str(artifact.value)
        uri = artifact.uri or ""
        path = self.workdir / safe_path(uri.removeprefix(WORKDIR)) if uri.startswith(WORKDIR) else _local(artifact)
        return path.read_text(encoding="utf-8")

    def json(self, name: str) -> Any:
        """A file's content as JSON."""
        return json.loads(self.text(name))

    def tree(self, prefix: str) -> dict[str, str]:
        """Contents by path below *prefix*, the prefix taken off."""
        return {name.removeprefix(prefix): self.text(name) for name in self.names(prefix)}

    def write(self, name: str, content: str, summary: str = "") -> None:
        """Leave a file. InvalidInput for a path that leads elsewhere, and for more than may be left."""
        name = safe_path(name)
        size = len(content.encode())
        if size > MAX_FILE_BYTES:
            raise InvalidInput(f"{name} has {size:,} bytes; {MAX_FILE_BYTES:,} are allowed")
        if len({*self.given, *self.made, name}) > MAX_FILES:
            raise InvalidInput(f"file limit reached: a run may write at most {MAX_FILES} files ({name})")
        path = self.workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
        self.made[name] = Artifact(type=FILE, name=name, uri=f"{WORKDIR}{name}", summary=summary, size_bytes=size)

    def write_json(self, name: str, content: Any, summary: str = "") -> None:
        """Leave a JSON file, keys in their own order, the same bytes for the same content."""
        self.write(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n", summary)

    def write_project(self, files: Mapping[str, str]) -> None:
        """Leave files of the project."""
        for path, content in files.items():
            self.write(f"{PROJECT}{path}", content)

    def artifacts(self) -> tuple[Artifact, ...]:
        """Everything that goes on: what was given and not written anew, and what was made."""
        return tuple({**self.given, **self.made}.values())


def lay_out(files: Mapping[str, str], folder: Path) -> None:
    """Write *files* below *folder*."""
    for name, content in files.items():
        path = folder / safe_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")


def read_back(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Read the named files below *folder*; those that are gone are left out."""
    found = {name: folder / name for name in names}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items() if path.is_file()}


def _local(artifact: Artifact) -> Path:
    parts = urlsplit(artifact.uri or "")
    if parts.scheme != "file":
        raise InvalidInput(f"{artifact.name} is at {artifact.uri}, which is not a local file")
    return Path(unquote(parts.path))
