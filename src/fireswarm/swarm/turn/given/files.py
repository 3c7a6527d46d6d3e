"""The input files of a task: what other tasks made, what the envelope brings, and what a person attached.

A file is stored in the task's input folder when it is used first, and checked against the size and hash of its
document. Only files of the session are read, and attachments of the objective: documents may name any file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import anyio.to_thread

from fireswarm.capabilities.workspace.outputs import number_if_taken, safe_name
from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.contracts.limits import shown_id, truncate
from fireswarm.contracts.ports import Blobs
from fireswarm.contracts.skills.artifact import ANSWER, ATTACHMENT, STORED_VALUE, Artifact, Attachment
from fireswarm.contracts.skills.given_files import INPUT_FOLDER, GivenFiles
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, NotFound, StoreError
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.swarm.parts import SwarmParts

ATTACHED, HANDED_OVER = "attached", "handed-over"
"""Folders of what a person attached, and of what the envelope brings; a task with such a key has another folder."""

MAX_TEXT_BYTES = 500_000
"""Maximum size of a file that is quoted to a model; a larger one is only named."""

MAX_TITLE_CHARS = 120

FROM_SERVERS = frozenset({"api", "a2a"})
"""Origins of tasks that clients of a server gave: they may name files of buckets, and none of this machine."""

_ATTACHMENT_SCHEMES = ("file", "gs")


@dataclass(frozen=True, slots=True)
class Giver:
    """Where input files come from: a task, an envelope, or a person. ``folder`` is that of its files."""

    folder: str
    title: str
    summary: str = ""
    insights: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file: its path, such as inputs/w1/findings.md, and the artifact that it holds."""

    name: str
    artifact: Artifact

    @property
    def is_json(self) -> bool:
        """True for a value that is not a text."""
        return self.name.endswith(".json") and (self.artifact.value is not None or self.artifact.mime == STORED_VALUE)


@dataclass(slots=True)
class InputFiles:
    """The input files of one task, by giver. ``missing`` has the reasons why others are not among them."""

    root: Path
    blobs: Blobs
    by_giver: dict[str, list[InputFile]] = field(default_factory=dict[str, list[InputFile]])
    missing: list[str] = field(default_factory=list[str])
    _by_name: dict[str, InputFile] = field(default_factory=dict[str, InputFile])
    _stored: set[str] = field(default_factory=set[str])
    _attached: set[str] = field(default_factory=set[str])

    def add(self, giver: Giver, session: str, trusted: Iterable[str] = ()) -> None:
        """Add the files of a giver: those of the session, those with *trusted* URIs, and values of documents."""
        names: set[str] = set()
        self._attached.update(trusted)
        files = self.by_giver.setdefault(giver.folder, [])
        known = {file.artifact.uri for file in self._by_name.values() if file.artifact.uri}
        for artifact in giver.artifacts:
            if artifact.uri is None and artifact.value is None:
                continue
            if artifact.uri is not None and artifact.uri in known:
                continue
            name = number_if_taken(_file_name(artifact), names)
            if artifact.uri and not (artifact.uri in self._attached or self.blobs.holds(artifact.uri, session)):
                self.missing.append(f"{giver.folder}/{name}: its address is not one of this session's files")
                continue
            file = InputFile(f"{INPUT_FOLDER}/{giver.folder}/{name}", artifact)
            files.append(file)
            self._by_name[file.name] = file

    @property
    def given(self) -> GivenFiles:
        """The files for tools and commands."""
        return GivenFiles(self.root, frozenset(self._by_name), self.fetch)

    async def fetch(self, name: str) -> None:
        """Store the file of a path, or all files below it. Raises InvalidInput for files that cannot be read."""
        faults: list[str] = []
        for file in self._by_name.values():
            if file.name in self._stored or not (file.name == name or file.name.startswith(f"{name}/")):
                continue
            try:
                await anyio.to_thread.run_sync(_store, self.root, file.name, await self.content(file))
            except (InvalidInput, NotFound, StoreError) as error:
                faults.append(f"{file.name} cannot be read: {error}")
            else:
                self._stored.add(file.name)
        if faults:
            raise InvalidInput("; ".join(faults))

    async def content(self, file: InputFile) -> bytes:
        """Return the content of a file. Raises NotFound, and StoreError if it is not what its document says."""
        artifact = file.artifact
        if artifact.uri is None:
            return _encode(artifact.value)
        content = await self.blobs.get(artifact.uri, anywhere=artifact.uri in self._attached)
        if artifact.mime == STORED_VALUE:
            return _encode(json.loads(content))
        if artifact.sha256 and hashlib.sha256(content).hexdigest() != artifact.sha256:
            raise StoreError(f"the stored file was changed: it has another hash than its task wrote down ({file.name})")
        return content

    async def text(self, file: InputFile) -> str | None:
        """Return the text of a file, or None if it is too large, cannot be read, or is no text."""
        artifact = file.artifact
        try:
            if artifact.uri is not None:
                size = await self.blobs.size(artifact.uri, anywhere=artifact.uri in self._attached)
                if size > MAX_TEXT_BYTES:
                    return None
            content = await self.content(file)
        except (NotFound, StoreError, ValueError):
            return None
        try:
            return None if b"\0" in content else content.decode()
        except UnicodeDecodeError:
            return None


def input_root(parts: SwarmParts, task_id: str) -> Path:
    """Return the folder in which the input folder of a task is."""
    return (parts.workdir / INPUT_FOLDER / task_id).resolve()


async def remove_inputs(parts: SwarmParts, task_id: str) -> None:
    """Remove the input files of a task; its next turn fetches them again."""
    root = input_root(parts, task_id)
    if root.exists():
        await anyio.to_thread.run_sync(partial(shutil.rmtree, root, ignore_errors=True))


def giver_of(task: Task, folders: set[str]) -> Giver:
    """Return a task as a giver, in a folder with the key of its plan, or else its short id, which *folders* lacks."""
    delegated = not task.plan_key or task.is_call
    name = number_if_taken(safe_name(shown_id(task.task_id) if delegated else task.plan_key), folders)
    result = task.result
    title = f"{task.assigned_to}, {task.status.value}: {truncate(' '.join(task.objective.split()), MAX_TITLE_CHARS)}"
    if result is None:
        return Giver(name, title, task.summary)
    notes = [f"{item.name} {item.strength:g}: {item.note}" for item in result.signals if task.is_review and item.note]
    return Giver(name, title, task.summary, (*result.insights, *notes), result.artifacts)


def attachments_giver(attachments: Sequence[Attachment]) -> Giver:
    """Return the files that a person attached as a giver."""
    artifacts = [Artifact(type=ATTACHMENT, name=item.name, mime=item.mime, uri=item.uri) for item in attachments]
    return Giver(ATTACHED, "attached to the objective", artifacts=tuple(artifacts))


def trusted_attachments(root: Task) -> frozenset[str]:
    """Return the URIs of attachments that may be read outside the session's files.

    They are those of an objective that a person gave on this machine or in the console. Servers and messages may only
    name files of buckets.
    """
    schemes = _ATTACHMENT_SCHEMES if is_given_here(root) else _ATTACHMENT_SCHEMES[1:]
    return frozenset(item.uri for item in root.attachments if item.uri.partition("://")[0] in schemes)


def is_given_here(task: Task) -> bool:
    """Return True if a person gave the task on this machine or in the console, not through a server or a message."""
    return not task.message_id and task.created_by not in FROM_SERVERS


def _file_name(artifact: Artifact) -> str:
    """Return the path of an artifact below the folder of its giver."""
    named = artifact.name or (artifact.uri or "").rpartition("/")[2] or artifact.type
    parts = [part for part in named.split("/") if part.strip(". ")]
    name = safe_name("/".join(parts)) if parts else artifact.type
    if artifact.uri is not None and artifact.mime != STORED_VALUE:
        return name
    suffix = ".md" if artifact.type == ANSWER else ".txt" if isinstance(artifact.value, str) else ".json"
    return name if PurePosixPath(name).suffix == suffix else f"{name}{suffix}"


def _encode(value: Any) -> bytes:
    """Return a value as the content of a file: a text as it is, anything else as JSON."""
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, indent=1, default=str, sort_keys=True)
    )
    return text.encode("utf-8", "replace")


def _store(root: Path, name: str, content: bytes) -> None:
    folder = root / INPUT_FOLDER
    make_state_folder(folder)
    place, target = Workspace(root), root / name
    place.write(target, content)
    target.chmod(0o444)
    for parent in target.relative_to(root).parents:  # a command may run as the owner of its workspace
        (root / parent).chmod(0o755)
