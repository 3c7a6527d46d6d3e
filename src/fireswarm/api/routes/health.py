"""``/healthz`` and ``/readyz``: for load balancers and orchestrators, without authentication."""

from __future__ import annotations

import anyio
from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from fireswarm.api.session import CurrentSession
from fireswarm.contracts.ports import Store
from fireswarm.errors import FireswarmError
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS

READY_SECONDS = 5.0
"""How long an answer about the store is kept: callers are unknown, and each look costs a read."""

LOOK_SECONDS = 2.0
"""How long the store may take to answer: probes of orchestrators wait as long as this or less."""

router = APIRouter(tags=["health"], default_response_class=PlainTextResponse)


@router.get("/healthz", include_in_schema=False)
async def is_alive() -> str:
    """Answer that this process serves requests."""
    return "ok\n"


@router.get("/readyz", include_in_schema=False)
async def is_ready(given: CurrentSession) -> PlainTextResponse:
    """Answer 200 if the store can be read, otherwise 503."""
    if await given.kept.remember("ready", READY_SECONDS, lambda: can_read(given.swarm.parts.store)):
        return PlainTextResponse("ok\n")
    return PlainTextResponse("the store cannot be read\n", 503)


async def can_read(store: Store) -> bool:
    """Return True if the store answers in time."""
    with anyio.move_on_after(LOOK_SECONDS):
        try:
            await store.query(queries.by_id(TASKS, 1))
        except FireswarmError:
            return False
        return True
    return False
