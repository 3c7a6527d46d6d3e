"""Artifacts of a task by name: their content, media type and a safe file name."""

from __future__ import annotations

import json
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fireswarm.contracts.ports import Blobs
from fireswarm.contracts.skills.artifact import ANSWER, STORED_VALUE, Artifact
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError, InvalidInput, NotFound

MAX_FILE_NAME_CHARS = 100
MAX_DIGITS = 10
UTF8 = "; charset=utf-8"

_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of an artifact, with media type and file name; with a ``path``, they are in this file instead."""

    data: bytes
    media_type: str
    file_name: str
    path: Path | None = None


def name_of(artifact: Artifact) -> str:
    """Return the name by which commands and the API find the artifact."""
    return artifact.name or (artifact.uri or "").rpartition("/")[2] or artifact.type


def find_artifact(task: Task, name: str = "") -> Artifact:
    """Return the artifact with *name*; without a name, the first one.

    Raises NotFound with the names of the task's artifacts.
    """
    artifacts = task.result.artifacts if task.result is not None else ()
    for artifact in artifacts:
        if name in ("", name_of(artifact)):
            return artifact
    known = ", ".join(dict.fromkeys(map(name_of, artifacts))) or "none"
    raise NotFound(f"task {task.task_id} has no artifact {name!r}; it has: {known}" if name else _no_artifact(task))


def find_numbered(task: Task, number: str, blobs: Blobs) -> Artifact:
    """Return the artifact with a number, from 0. Raises NotFound, also for one outside of the session's blobs."""
    artifacts = task.result.artifacts if task.result is not None else ()
    if not (number.isdecimal() and len(number) < MAX_DIGITS and int(number) < len(artifacts)):
        raise NotFound(f"the task has no file {number}: it has {len(artifacts)}")
    artifact = artifacts[int(number)]
    if artifact.uri is not None and not blobs.holds(artifact.uri, task.session_hash):
        raise NotFound("this file is not in the blob store of its session")
    return artifact


def with_present_uris(task: Task, blobs: Blobs) -> Task:
    """Return the task with the current URIs of its artifacts: its folder may have been copied or moved."""
    if task.result is None or not task.result.artifacts:
        return task
    artifacts = tuple(
        artifact.model_copy(update={"uri": blobs.locate(artifact.uri)}) if artifact.uri else artifact
        for artifact in task.result.artifacts
    )
    return task.model_copy(update={"result": task.result.model_copy(update={"artifacts": artifacts})})


async def open_content(blobs: Blobs, artifact: Artifact, max_bytes: int) -> Content:
    """Return an artifact to send on: a file is not read into memory. Raises what `read_content` raises."""
    if artifact.uri is None or artifact.mime == STORED_VALUE:
        return await read_content(blobs, artifact, max_bytes)
    name = name_of(artifact)
    _check_size(name, await blobs.size(artifact.uri), max_bytes)
    path = await blobs.local_path(artifact.uri)
    return Content(b"", _media_type(artifact.mime, name), safe_file_name(name), path)


async def read_content(blobs: Blobs, artifact: Artifact, max_bytes: int | None = None) -> Content:
    """Read an artifact: its file, or its value as JSON or text.

    Raises NotFound, StoreError, and InvalidInput for a file of more than *max_bytes*.
    """
    name = name_of(artifact)
    if artifact.uri is not None:
        _check_size(name, await blobs.size(artifact.uri) if max_bytes is not None else 0, max_bytes)
        data = await blobs.get(artifact.uri)
        if artifact.mime != STORED_VALUE:
            return Content(data, _media_type(artifact.mime, name), safe_file_name(name))
        value = json.loads(data)
    else:
        value = artifact.value
    if isinstance(value, str):
        return Content(value.encode("utf-8", "replace"), f"text/plain{UTF8}", safe_file_name(name, ".txt"))
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"
    return Content(text.encode("utf-8", "replace"), "application/json", safe_file_name(name, ".json"))


async def read_answer(blobs: Blobs, task: Task) -> str:
    """Return the task's answer: its answer artifacts, or else the summary of its result; "" without a result."""
    if task.result is None:
        return ""
    texts = [await _text_of(blobs, artifact) for artifact in task.result.artifacts if artifact.type == ANSWER]
    return "\n\n".join(dict.fromkeys(text for text in texts if text)) or task.result.summary


def safe_file_name(name: str, suffix: str = "") -> str:
    """Return the last part of *name* with plain ASCII characters only; adds *suffix* if it has none."""
    plain = _UNSAFE.sub("_", re.split(r"[/\\]", name.rstrip("/\\"))[-1]).lstrip(".")[-MAX_FILE_NAME_CHARS:]
    plain = plain.strip("_") or "artifact"
    return plain if "." in plain else plain + suffix


async def _text_of(blobs: Blobs, artifact: Artifact) -> str:
    """Return the text of an answer.

    A long answer is a JSON string in the blob store; returns "" if it is unreadable.
    """
    value: Any = artifact.value
    if artifact.uri is not None and artifact.mime == STORED_VALUE:
        try:
            value = json.loads(await blobs.get(artifact.uri))
        except (FireswarmError, ValueError):
            return ""
    return value if isinstance(value, str) else ""


def _media_type(given: str | None, name: str) -> str:
    """Return the artifact's media type, or else that of its file name. Text is UTF-8."""
    kind = given if given and _MEDIA_TYPE.fullmatch(given) else mimetypes.guess_type(name)[0]
    kind = kind or ("text/markdown" if name.endswith(".md") else "application/octet-stream")
    return f"{kind}{UTF8}" if kind.startswith("text/") else kind


def _check_size(name: str, size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise InvalidInput(f"artifact {name!r} has {size:,} bytes, more than {limit:,}: copy it with `swarm artifacts`")


def _no_artifact(task: Task) -> str:
    return f"task {task.task_id} is {task.status.value} and has no artifacts"
