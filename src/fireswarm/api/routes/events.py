"""``/v1/events``: what happens, while it happens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from fireswarm.api.models.base import Id
from fireswarm.api.models.work import TASK_ID
from fireswarm.api.session import CurrentSession
from fireswarm.api.stream import EventStream, StreamPosition

router = APIRouter(prefix="/v1/events", tags=["events"])

EXAMPLE = 'id: WyIyMDI2\nevent: task\ndata: {"task_id": "5f0c2f54", "status": "done"}\n\n'
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `task` (a task changed), `run` (something happened in a run) and `end` (the objective "
        "has ended). The id of each goes into `Last-Event-ID`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
    },
    204: {"description": "The objective has ended, and all of it was told before the `Last-Event-ID`"},
}  # fmt: skip


@router.get("", response_class=Response, responses=STREAM)
async def follow_events(
    given: CurrentSession,
    task: Annotated[
        Id | None,
        Query(description="a task: its whole objective is told, from the beginning to the end", examples=[TASK_ID]),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(max_length=60_000, description="id of the last event that came: it goes on from there"),
    ] = None,
) -> Response:
    """Follow an objective from its beginning; without `task` the session, from now on."""
    position = StreamPosition.decode(last_event_id) if last_event_id else None
    chain = None if task is None else (await given.task(task)).trace.chain_id
    if position is not None and position.ended and chain is not None:
        return Response(status_code=204)
    return EventStream(given.swarm, given.redactor, given.stopping, chain, position)
