"""``/v1/events``: a stream of server-sent events."""

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
        "description": "Event types: `task` (a task changed), `run` (a run wrote an event) and `end` (the objective "
        "has ended). To resume the stream, send the id of the last event as `Last-Event-ID`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
    },
    204: {"description": "The objective has ended, and there are no events after `Last-Event-ID`"},
}  # fmt: skip


@router.get("", response_class=Response, responses=STREAM)
async def follow_events(
    given: CurrentSession,
    task: Annotated[
        Id | None,
        Query(description="any task of an objective: stream all events of the objective", examples=[TASK_ID]),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(max_length=60_000, description="id of the last event received; the stream continues after it"),
    ] = None,
) -> Response:
    """Stream an objective from its beginning, or without `task` the session from now on."""
    position = StreamPosition.decode(last_event_id) if last_event_id else None
    chain = None if task is None else (await given.task(task)).trace.chain_id
    if position is not None and position.ended and chain is not None:
        return Response(status_code=204)
    return EventStream(given, chain, position)
