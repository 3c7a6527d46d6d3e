"""``/v1/schedules``: objectives that are submitted again and again. Their processes submit them, the API sets them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from fireswarm.api.models.schedules import ScheduleIn, ScheduleList, ScheduleOut
from fireswarm.api.problems import Refusal, Refused
from fireswarm.api.reading.entity_tags import TagCondition, hash_content
from fireswarm.api.session import ApiSession, CurrentSession, InPath
from fireswarm.contracts.base import encode_json
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import schedule_path
from fireswarm.storage.documents.read import parse_all
from fireswarm.swarm.schedules import stored
from fireswarm.swarm.schedules.schedule import Schedule, parse_schedule

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

MOST_LISTED = 500
"""Schedules of one answer: each costs a read."""

IfMatch = Annotated[
    str | None,
    Header(description="ETags of the states you accept; 412 if the schedule has another one", examples=['"5f0c2f54"']),
]


@router.get("", response_model=ScheduleList)
async def list_schedules(given: CurrentSession) -> Any:
    """List the schedules of the session by name, at most 500. Not paged."""
    found = await given.swarm.parts.store.query(queries.schedules_in(given.session, MOST_LISTED))
    schedules, others = parse_all(sorted(found, key=lambda snapshot: snapshot.id), parse_schedule)
    return ScheduleList(
        items=tuple(map(ScheduleOut.model_validate, schedules)),
        total=len(schedules),
        unreadable=tuple(snapshot.id for snapshot, _ in others),
    )


@router.get("/{name}", response_model=ScheduleOut)
async def get_schedule(given: CurrentSession, name: InPath, response: Response) -> Any:
    """Show one schedule."""
    return _answer(await _load(given, name), response)


@router.put(
    "/{name}",
    response_model=ScheduleOut,
    responses={201: {"model": ScheduleOut, "description": "There was no schedule of this name"}},
)
async def put_schedule(
    given: CurrentSession, name: InPath, sent: ScheduleIn, response: Response, if_match: IfMatch = None
) -> Any:
    """Set a schedule. It keeps its next time unless `cron` or `timezone` change."""
    fields = {**sent.task.task_fields(), "session_hash": given.session, "created_by": "api"}
    spec = make_spec(**fields, assigned_to=sent.task.role)
    is_new = True

    def accept(earlier: Schedule | None) -> None:
        nonlocal is_new
        is_new = earlier is None
        _check(if_match, earlier, name)

    timing = {"cron": sent.cron, "timezone": sent.timezone, "overlap": sent.overlap, "paused": sent.paused}
    schedule = await stored.put(given.swarm.parts, name, spec, timing, accept)
    if is_new:
        response.status_code = 201
        response.headers["Location"] = f"/v1/schedules/{name}"
    return _answer(schedule, response)


@router.delete("/{name}", status_code=204)
async def delete_schedule(given: CurrentSession, name: InPath, if_match: IfMatch = None) -> None:
    """Delete a schedule. Its tasks continue."""
    given.own_document(await given.swarm.parts.store.get(schedule_path(name)), "schedule")
    await stored.delete(given.swarm.parts.store, name, lambda schedule: _check(if_match, schedule, name))


async def _load(given: ApiSession, name: str) -> Schedule:
    """Return a schedule of the session. Raises NotFound, and InvalidInput for a malformed one."""
    return parse_schedule(given.own_document(await given.swarm.parts.store.get(schedule_path(name)), "schedule"))


def _answer(schedule: Schedule, response: Response) -> ScheduleOut:
    response.headers["ETag"] = _tag_of(schedule)
    return ScheduleOut.model_validate(schedule)


def _tag_of(schedule: Schedule) -> str:
    """Return a tag that changes with each field, also if a person or a process changes it."""
    return hash_content(encode_json(schedule.model_dump(mode="json")))


def _check(if_match: str | None, schedule: Schedule | None, name: str) -> None:
    """Raise Refused if the schedule is not in a state that the request accepts."""
    if if_match is None:
        return
    condition = TagCondition.parse([if_match])
    if schedule is None:
        raise Refused(Refusal(412, "precondition_failed", f"there is no readable schedule {name}"))
    if not condition.any_version and _tag_of(schedule) not in condition.strong:
        raise Refused(Refusal(412, "precondition_failed", f"schedule {name} has changed: read it again"))
