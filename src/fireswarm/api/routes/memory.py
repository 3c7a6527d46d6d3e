"""``/v1/memory``: what the session knows, and which agents live."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from fireswarm.api.models.records import FactOut, FactPage, HeartbeatPage, Recalled, heartbeat_out
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.session import CurrentSession
from fireswarm.storage.documents.paths import MEMORY
from fireswarm.storage.memory import keywords_of, parse_fact

router = APIRouter(prefix="/v1/memory", tags=["memory"])


@router.get("/facts", response_model=FactPage)
async def list_facts(
    given: CurrentSession,
    bucket: Annotated[str | None, Query(max_length=100, description="of one bucket", examples=["inventory"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List facts, those stored last first."""
    filters = {"type": "fact", "bucket": bucket}
    found = await read_page(given.swarm, MEMORY, "created_at", parse_fact, limit=limit, cursor=cursor, **filters)
    return FactPage.model_validate(found.fields())


@router.get("/recall", response_model=Recalled)
async def recall(
    given: CurrentSession,
    query: Annotated[
        str, Query(min_length=1, max_length=1_000, description="words to recall by", examples=["changed files"])
    ],
    limit: Limit = DEFAULT_LIMIT,
) -> Any:
    """Recall facts by the words of a text, as agents do."""
    words = keywords_of([query])
    found = await given.swarm.memory.recall(given.session, words, limit)
    return Recalled(keywords=tuple(words), items=tuple(FactOut.model_validate(fact) for fact in found))


@router.get("/agents", response_model=HeartbeatPage)
async def list_heartbeats(given: CurrentSession, limit: Limit = DEFAULT_LIMIT) -> Any:
    """List role processes by their latest heartbeat; a day after the last one it is forgotten."""
    now = given.swarm.clock.now()
    items = tuple(heartbeat_out(status, now) for status in await given.swarm.heartbeats.latest(limit))
    return HeartbeatPage(items=items, total=len(items))
