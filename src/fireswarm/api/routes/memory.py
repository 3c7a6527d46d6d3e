"""``/v1/memory``: facts of the session, and heartbeats of role processes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from fireswarm.api.models.records import FactHistory, FactOut, FactPage, HeartbeatPage, Recalled, heartbeat_out
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.session import CurrentSession, InPath
from fireswarm.storage.documents.paths import MEMORY
from fireswarm.storage.memory import find_keywords, parse_fact

router = APIRouter(prefix="/v1/memory", tags=["memory"])


@router.get("/facts", response_model=FactPage)
async def list_facts(
    given: CurrentSession,
    bucket: Annotated[str | None, Query(max_length=100, description="filter by bucket", examples=["inventory"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List facts, most recently stored first."""
    filters = {"type": "fact", "bucket": bucket}
    page = await read_page(given.swarm, MEMORY, "created_at", parse_fact, limit=limit, cursor=cursor, **filters)
    return FactPage.model_validate(page.fields())


@router.get("/facts/{fact_id}/history", response_model=FactHistory)
async def get_fact_history(given: CurrentSession, fact_id: InPath) -> Any:
    """Show the values that a fact has had, newest first."""
    given.own_document(await given.swarm.parts.store.get(f"{MEMORY}/{fact_id}"), "fact")
    facts = await given.swarm.fact_history(fact_id)
    return FactHistory(items=tuple(FactOut.model_validate(fact) for fact in facts), total=len(facts))


@router.get("/recall", response_model=Recalled)
async def recall(
    given: CurrentSession,
    query: Annotated[
        str,
        Query(min_length=1, max_length=1_000, description="text whose words are looked up", examples=["changed files"]),
    ],
    limit: Limit = DEFAULT_LIMIT,
) -> Any:
    """Find facts and summaries by the words of a text, best first, as agents do."""
    facts = await given.swarm.parts.memory.recall(given.session, query, limit)
    return Recalled(keywords=tuple(find_keywords([query])), items=tuple(FactOut.model_validate(fact) for fact in facts))


@router.get("/agents", response_model=HeartbeatPage)
async def list_heartbeats(given: CurrentSession, limit: Limit = DEFAULT_LIMIT) -> Any:
    """List role processes by latest heartbeat. A process without a heartbeat for a day is dropped."""
    now = given.swarm.parts.clock.now()
    items = tuple(heartbeat_out(status, now) for status in await given.swarm.parts.heartbeats.latest(limit))
    return HeartbeatPage(items=items, total=len(items))
