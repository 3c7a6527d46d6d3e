"""``/v1/tasks/{task_id}/artifacts/{name}``: the content of a task's artifact."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from fireswarm.api.session import CurrentSession, InPath, attachment
from fireswarm.errors import NotFound
from fireswarm.swarm.records.artifacts import find_artifact, open_content

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

MAX_ARTIFACT_BYTES = 50_000_000
"""Largest artifact that is served."""

CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes of the artifact, with its media type. A value is `text/plain` or `application/json`.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("/{task_id}/artifacts/{name:path}", response_class=Response, responses=CONTENT)
async def get_artifact(
    given: CurrentSession,
    task_id: InPath,
    name: Annotated[str, Path(description="name of the artifact", examples=["report.md"])],
) -> Response:
    """Download an artifact of a task by its name. At most 50 MB; a file outside the blob store is not served."""
    artifact = find_artifact(await given.task(task_id), name)
    if artifact.uri is not None and not given.swarm.parts.blobs.holds(artifact.uri, given.session):
        raise NotFound(f"the artifact {name!r} is not in the blob store of this session")
    return attachment(await open_content(given.swarm.parts.blobs, artifact, MAX_ARTIFACT_BYTES), {})
