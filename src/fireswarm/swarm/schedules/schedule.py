"""A schedule: a task that is submitted again and again, and when. It may be written by a person in the console."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, ValidationError

from fireswarm.contracts.base import (
    DocumentId,
    JsonObject,
    RoleName,
    SessionName,
    Stored,
    Timestamp,
    as_utc,
    explain_validation,
)
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import SCHEMA_VERSION, Count, TaskSpec
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.build import check_version, plain
from fireswarm.storage.documents.read import HAND_WRITTEN_SESSION
from fireswarm.swarm.schedules.history import make_key
from fireswarm.swarm.schedules.times import check_cron, check_timezone, describe_cron
from fireswarm.swarm.submission.arguments import SCHEDULE_NAME

OF_SCHEDULE = frozenset({"assigned_to", "session_hash", "created_by"})
"""Fields of a task that the schedule has itself."""

OF_ONE_TASK = frozenset({"fresh_key", "message_id", "deadline", "depends_on"})
"""Fields that only make sense for one task: the second one would be refused, or be the same task."""


class Overlap(StrEnum):
    """What happens at a time when the task of the last one has not ended: nothing, or another task."""

    SKIP = "skip"
    ALLOW = "allow"


class Schedule(Stored):
    """A document of ``agent_schedules``.

    ``task`` has fields of TaskSpec. ``next_at`` is None while it is paused; ``timed_by`` is the expression and zone for
    which it was calculated, so that an edit of them is noticed. ``note`` is why the last time had no task, how many
    were left out, or what is wrong with the document.
    """

    schedule_id: Annotated[DocumentId, Field(pattern=SCHEDULE_NAME)]
    session_hash: SessionName = HAND_WRITTEN_SESSION
    assigned_to: RoleName
    cron: Annotated[str, AfterValidator(check_cron)]
    timezone: Annotated[str, AfterValidator(check_timezone)] = "UTC"
    task: JsonObject
    overlap: Overlap = Overlap.SKIP
    paused: bool = False
    next_at: Timestamp | None = None
    timed_by: str = ""
    last_at: Timestamp | None = None
    last_task_id: DocumentId | None = None
    note: str = ""
    created_by: str = "operator"
    created_at: Timestamp
    updated_at: Timestamp
    schema_version: Count = SCHEMA_VERSION

    @property
    def timing(self) -> str:
        """The expression and the zone, as ``timed_by`` has them."""
        return f"{self.cron} {self.timezone}"

    @property
    def defaulted(self) -> dict[str, Any]:
        """The fields that a person may leave out, for a document that shows what can be changed."""
        return {
            "session_hash": self.session_hash,
            "timezone": self.timezone,
            "overlap": self.overlap.value,
            "paused": self.paused,
        }

    @property
    def words(self) -> str:
        """The expression as a sentence, without the zone."""
        return describe_cron(self.cron)

    @property
    def next_words(self) -> str:
        """The next time in its zone, ``2026-11-30 06:00 Europe/Berlin``, or what it waits for."""
        if self.paused:
            return "paused"
        if self.next_at is None:
            return "when a process of the role runs"
        try:
            return f"{self.next_at.astimezone(ZoneInfo(self.timezone)):%Y-%m-%d %H:%M} {self.timezone}"
        except OverflowError:  # the first and the last day that there are, which a hand may write
            return f"{self.next_at:%Y-%m-%d %H:%M} UTC"

    @property
    def objective(self) -> str:
        """The objective of its tasks."""
        return str(self.task.get("objective", ""))

    def make_spec(self, occasion: str) -> TaskSpec:
        """Return the task for one occasion: the same one has the same task. Raises InvalidInput with all faults."""
        if unfit := sorted(self.task.keys() & (OF_SCHEDULE | OF_ONE_TASK)):
            where = "set it beside task" if unfit[0] in OF_SCHEDULE else "it makes no sense for many tasks"
            raise InvalidInput(f"task.{unfit[0]} cannot be scheduled: {where}")
        given: dict[str, Any] = {
            "assigned_to": self.assigned_to,
            "session_hash": self.session_hash,
            "created_by": self.created_by,
            "fresh_key": make_key(self.schedule_id, occasion),
        }
        try:
            return TaskSpec.model_validate({**self.task, **given})
        except ValidationError as error:
            raise InvalidInput(f"its task: {explain_validation(error)}") from error

    def spec_at(self, at: datetime) -> TaskSpec:
        """Return the task for one of its times."""
        return self.make_spec(as_utc(at).isoformat())


def task_map(spec: TaskSpec) -> dict[str, Any]:
    """Return the fields of a task that a schedule has: those that are not the default.

    Raises InvalidInput for a field that makes sense for one task only.
    """
    for name in sorted(OF_ONE_TASK):
        if getattr(spec, name) != TaskSpec.model_fields[name].default:
            raise InvalidInput(f"a task with {name} cannot be scheduled: it makes no sense for many tasks")
    stored = plain(spec)
    return {
        name: value
        for name, value in stored.items()
        if name not in OF_SCHEDULE and getattr(spec, name) != TaskSpec.model_fields[name].default
    }


def parse_schedule(snapshot: Snapshot) -> Schedule:
    """Parse a schedule, also one that a person wrote: the document's id is its name.

    Raises InvalidInput with what to correct, NewerDocument for a document of a newer version.
    """
    data: Mapping[str, Any] = snapshot.data or {}
    version = data.get("schema_version")
    if isinstance(version, int):
        check_version(version, snapshot.path)
    times = {
        name: data.get(name) if isinstance(data.get(name), datetime) else snapshot.create_time
        for name in ("created_at", "updated_at")
    }
    given = {name: value for name, value in data.items() if value is not None}  # null in the console is no value
    try:
        schedule = Schedule.model_validate({**given, **times, "schedule_id": snapshot.id})
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not a schedule: {explain_validation(error)}") from error
    try:
        schedule.make_spec("check")
    except InvalidInput as error:
        raise InvalidInput(f"{snapshot.path} is not a schedule: {error}") from error
    return schedule
