"""``/v1/runs``: runs of tasks and their events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from fireswarm.api.models.work import TASK_ID, RunDetail, RunPage
from fireswarm.api.paging import DEFAULT_LIMIT, Cursor, Limit, read_page
from fireswarm.api.session import CurrentSession, InPath
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.storage.documents.paths import RUNS, run_path
from fireswarm.storage.documents.read import parse_run_snapshot

router = APIRouter(prefix="/v1/runs", tags=["runs"])
SHOWN_EVENTS = 200


@router.get("", response_model=RunPage)
async def list_runs(
    given: CurrentSession,
    task: Annotated[str | None, Query(max_length=200, description="filter by task id", examples=[TASK_ID])] = None,
    role: Annotated[str | None, Query(max_length=63, description="filter by role", examples=["scout"])] = None,
    status: Annotated[RunStatus | None, Query(description="filter by status", examples=["completed"])] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Any:
    """List runs without their events, most recently started first."""
    filters = {"task_id": task, "role": role, "status": status}
    page = await read_page(given.swarm, RUNS, "started_at", parse_run_snapshot, limit=limit, cursor=cursor, **filters)
    return RunPage.model_validate(page.fields())


@router.get("/{run_id}", response_model=RunDetail)
async def get_run(
    given: CurrentSession,
    run_id: InPath,
    events: Annotated[
        int, Query(ge=0, le=5_000, description="number of latest events to return", examples=[200])
    ] = SHOWN_EVENTS,
) -> Any:
    """Show one run with its events."""
    snapshot = given.own_document(await given.swarm.parts.store.get(run_path(run_id)), "run")
    all_events = await read_events(given.swarm.parts.store, snapshot)
    latest = all_events[max(0, len(all_events) - events) :]
    fields = {name: value for name, value in parse_run_snapshot(snapshot) if name != "events"}
    return RunDetail.model_validate(fields | {"events": latest, "events_left_out": len(all_events) - len(latest)})
