"""``/v1/tasks/{task_id}/artifacts/{name}``: the content of a task's artifact."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Path, Response

from fireswarm.api.reading.entity_tags import make_entity_tag
from fireswarm.api.session import ApiSession, CurrentSession, InPath, attachment
from fireswarm.errors import NotFound
from fireswarm.swarm.records.artifacts import Content, find_artifact, open_content

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

MAX_ARTIFACT_BYTES = 50_000_000
"""Largest artifact that is served."""

MEDIA_TYPES = ("application/octet-stream", "*/*")
"""Of an artifact, it may be any. The first one is for generators of clients, which know no ``*/*``."""

CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes of the artifact, with its media type. A value is `text/plain` or `application/json`.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES},
    }
}


@router.get("/{task_id}/artifacts/{name:path}", response_class=Response, responses=CONTENT)
async def get_artifact(
    given: CurrentSession,
    task_id: InPath,
    name: Annotated[str, Path(description="name of the artifact", examples=["report.md"])],
) -> Response:
    """Download an artifact of a task by its name. At most 50 MB; a file outside the blob store is not served."""
    content = await _open(given, task_id, name)
    digest = await to_thread.run_sync(_digest, content)
    return attachment(content, {"ETag": make_entity_tag(digest)})


async def _open(given: ApiSession, task_id: str, name: str) -> Content:
    artifact = find_artifact(await given.task(task_id), name)
    if artifact.uri is not None and not given.swarm.parts.blobs.holds(artifact.uri, given.session):
        raise NotFound(f"the artifact {name!r} is not in the blob store of this session")
    return await open_content(given.swarm.parts.blobs, artifact, MAX_ARTIFACT_BYTES)


def _digest(content: Content) -> str:
    """Return the SHA-256 of an artifact. A file is hashed as it is: the name of a blob may be written again."""
    if content.path is None:
        return hashlib.sha256(content.data).hexdigest()
    with content.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
