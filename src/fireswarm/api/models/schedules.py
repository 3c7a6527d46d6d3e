"""API models of schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import model_validator

from fireswarm.api.models.base import MOMENT, RequestModel, ResponseModel, documented
from fireswarm.api.models.work import TASK_ID, Work
from fireswarm.contracts.swarm.agent import DEFAULT_ROLE
from fireswarm.swarm.schedules.schedule import Overlap, Schedule

EXAMPLE = {"objective": "Report on this folder", "role": "scout"}


class ScheduledWork(Work):
    """The task of a schedule, without what makes sense for one task only."""

    role: str = documented(
        "role that executes the tasks", "scout", default=DEFAULT_ROLE, pattern=r"^[a-z][a-z0-9-]{0,62}$"
    )


class ScheduleIn(RequestModel):
    """A schedule to set. It replaces the one of the same name, with its last task kept."""

    cron: str = documented(
        "minute, hour, day of month, month and day of week", "0 6 * * 1-5", min_length=1, max_length=200
    )
    timezone: str = documented("IANA name of the time zone", "Europe/Berlin", default="UTC", max_length=100)
    overlap: Overlap = documented(
        "`skip` leaves a time out while the last task has not ended, `allow` does not", "skip", default=Overlap.SKIP
    )
    paused: bool = documented("submit nothing", False, default=False, strict=True)
    task: ScheduledWork = documented("what is submitted at each time", EXAMPLE)


class ScheduleOut(ResponseModel):
    """A schedule, its next time and its last task."""

    name: str = documented("name of the schedule", "morning-report", validation_alias="schedule_id")
    cron: str = documented("minute, hour, day of month, month and day of week", "0 6 * * 1-5")
    timezone: str = documented("IANA name of the time zone", "Europe/Berlin")
    words: str = documented("the expression in words", "At 06:00 on Monday through Friday")
    overlap: Overlap = documented("`skip` or `allow` a time while the last task has not ended", "skip")
    paused: bool = documented("nothing is submitted", False)
    task: dict[str, Any] = documented("what is submitted at each time: the fields that are set", EXAMPLE)
    next_at: datetime | None = documented("next time; null while it is paused", MOMENT, default=None)
    last_at: datetime | None = documented("time of the last task", MOMENT, default=None)
    last_task_id: str | None = documented("the last task", TASK_ID, default=None)
    note: str = documented("why the last time had no task, or how many were left out", "", default="")
    created_by: str = documented("`api`, `operator` or `console`", "api")
    created_at: datetime = documented("time of creation", MOMENT)
    updated_at: datetime = documented("time of the last change", MOMENT)

    @model_validator(mode="before")
    @classmethod
    def _with_role(cls, value: Any) -> Any:
        if not isinstance(value, Schedule):
            return value
        fields = value.model_dump() | {"words": value.words}
        return fields | {"task": {**value.task, "role": value.assigned_to}}


class ScheduleList(ResponseModel):
    """The schedules of the session, by name."""

    items: tuple[ScheduleOut, ...] = documented("schedules", [])
    total: int = documented("number of items", 3)
    unreadable: tuple[str, ...] = documented(
        "names of schedules that were set aside, such as hand-written ones with a typo", [], default=()
    )
