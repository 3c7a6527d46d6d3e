"""Schedules: when each submits its task, what became of the last one, and the form that sets one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fireswarm.api.console.pages.agents import keep_orders
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.contracts.swarm.task import Task, TaskSpec
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import FireswarmError, InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import SCHEDULES, schedule_path, task_path
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot
from fireswarm.swarm.schedules.schedule import Overlap, Schedule, parse_schedule

MOST_SHOWN, KEPT_SECONDS = 500, 10.0
"""Schedules of the page, and how long they are kept: each costs two reads."""

TASKS_SHOWN = 30

TEXTS = ("name", "changes", "cron", "timezone", "objective", "role", "skill", "overlap")
"""Fields of the form; ``changes`` is the name of the schedule that it was filled with."""

NEW: Mapping[str, str] = {"cron": "0 6 * * 1-5", "timezone": "UTC", "role": DEFAULT_ROLE}


@dataclass(frozen=True, slots=True)
class ScheduleRows:
    """The schedules, the next one first, their last tasks by id, and the documents set aside, each with its fault."""

    schedules: Sequence[Schedule]
    tasks: Mapping[str, Task]
    faulty: Sequence[tuple[str, str]]


async def show(visit: Visit) -> Shown:
    """Make the page; with ``name`` in the address, its form changes that schedule."""
    name = visit.query.get("name", "")
    given = _form_of(await visit.swarm.schedules.get(name)) if name else dict(NEW)
    return await _make_page(visit, given)


async def show_one(visit: Visit) -> Shown:
    """Make the page of a schedule with its newest tasks. Raises NotFound and InvalidInput."""
    schedules, name = visit.swarm.schedules, visit.path["name"]
    values = {"schedule": await schedules.get(name), "tasks": await schedules.tasks(name, limit=TASKS_SHOWN)}
    return Shown("schedule.html", values)


async def act(visit: Visit) -> Goto | Shown:
    """Set, pause, resume, run or remove the schedule of a form. Raises InvalidInput and NotFound."""
    schedules, name = visit.swarm.schedules, visit.form.get("name", "").strip()
    match visit.form.get("do"):
        case "set":
            return await _set(visit)
        case "pause":
            await schedules.pause(name)
            return Goto("/schedules", "schedule_paused")
        case "resume":
            await schedules.resume(name)
            return Goto("/schedules", "schedule_resumed")
        case "remove":
            await schedules.remove(name)
            return Goto("/schedules", "schedule_removed")
        case "run":
            submitted = await schedules.run_now(name)
            return Goto(f"/tasks/{submitted.task_id}", "submitted")
        case _:
            raise InvalidInput("the form does not say what to do: load the page again")


async def _set(visit: Visit) -> Goto | Shown:
    """Set a schedule; with a fault, show the form as it was sent."""
    given = {name: visit.form.get(name, "").replace("\r\n", "\n").strip() for name in TEXTS}
    try:
        earlier = await visit.swarm.schedules.get(given["changes"]) if given["changes"] else None
        name = given["name"] if earlier is None else earlier.schedule_id
        spec = _spec_of(visit, given, earlier)
        if earlier is None:
            await _check_new(visit.swarm, name)
        overlap = Overlap.ALLOW if given["overlap"] == "yes" else Overlap.SKIP
        await visit.swarm.schedules.set(name, given["cron"], spec, timezone=given["timezone"] or "UTC", overlap=overlap)
    except FireswarmError as error:
        return await _make_page(visit, given, str(error))
    return Goto("/schedules", "scheduled")


def _spec_of(visit: Visit, given: Mapping[str, str], earlier: Schedule | None) -> TaskSpec:
    """Return the task of the form. A changed schedule keeps the fields that the form does not have."""
    fields: dict[str, Any] = {"session_hash": visit.swarm.session, "created_by": "console"}
    objective: str | None = given["objective"]
    if earlier is not None:
        fields = {**earlier.task, "session_hash": earlier.session_hash, "created_by": earlier.created_by}
        objective = visit.changed_text("objective", earlier.objective) or earlier.objective
    if not objective:
        raise InvalidInput("say what is to be done")
    named = {"assigned_to": given["role"] or DEFAULT_ROLE, "skill": given["skill"] or None}
    return make_spec(**{**fields, **named, "objective": objective})


async def _check_new(swarm: Swarm, name: str) -> None:
    """Raise InvalidInput if there is a schedule of this name: a form for a new one must not replace it."""
    if is_document_id(name) and (await swarm.parts.store.get(schedule_path(name))).data is not None:
        raise InvalidInput(f"there is a schedule {name}: change it in the list, or choose another name")


def _form_of(schedule: Schedule) -> dict[str, str]:
    return {
        "name": schedule.schedule_id,
        "changes": schedule.schedule_id,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "objective": schedule.objective,
        "role": schedule.assigned_to,
        "skill": str(schedule.task.get("skill", "")),
        "overlap": "yes" if schedule.overlap is Overlap.ALLOW else "",
    }


async def _make_page(visit: Visit, given: Mapping[str, str], fault: str = "") -> Shown:
    listed = await keep_schedules(visit)
    parts = visit.swarm.parts
    orders = await keep_orders(visit.console)
    values = {
        "listed": listed,
        "paused_roles": {order.role for order in orders if order.paused and not order.subject},
        "given": dict.fromkeys(TEXTS, "") | dict(given),
        "roles": sorted(parts.roles),
        "skills": sorted({*parts.catalog.skills, *parts.inline}),
        "fault": fault,
    }
    return Shown("schedules.html", values, 422 if fault else 200)


async def keep_schedules(visit: Visit) -> ScheduleRows:
    """Return all schedules, as they were at most ten seconds ago."""
    return await visit.console.feed.remember("schedules", KEPT_SECONDS, lambda: _read(visit.swarm))


async def _read(swarm: Swarm) -> ScheduleRows:
    store = swarm.parts.store
    schedules, others = parse_all(await store.query(queries.by_id(SCHEDULES, MOST_SHOWN)), parse_schedule)
    ids = sorted({schedule.last_task_id for schedule in schedules if schedule.last_task_id})
    found: list[Snapshot] = await store.get_many([task_path(task_id) for task_id in ids]) if ids else []
    tasks, _ = parse_all(found, parse_task_snapshot)  # one that was deleted is left out
    faulty = [(snapshot.id, str(error)) for snapshot, error in others]
    schedules = sorted(schedules, key=lambda each: (each.next_at is None, each.next_at or each.created_at))
    return ScheduleRows(schedules, {task.task_id: task for task in tasks}, faulty)
