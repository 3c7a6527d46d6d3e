"""Times of a schedule: cron expressions in a time zone, with the changes of daylight saving. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from fireswarm.contracts.base import show_value

FIELDS = 5
MAX_CRON_CHARS = 200
"""Longest expression: five fields of lists. A longer one takes long to parse."""

MAX_COUNTED = 1_000
"""Missed times that are counted one by one: each takes microseconds, and a schedule of each minute misses 500,000 a
year."""

LOCAL_ZONE = "localtime"
"""A file of some machines' time zone databases, which means another zone on each machine."""


def check_cron(expression: str) -> str:
    """Return *expression* with single spaces. Raises ValueError if it is no cron expression, or names no time."""
    parts = expression.split()
    if len(parts) != FIELDS or len(expression) > MAX_CRON_CHARS:
        raise ValueError(
            "has to be minute, hour, day of month, month and day of week, such as `0 6 * * 1-5`: 06:00 from Monday to "
            "Friday"
        )
    given = " ".join(parts)
    try:
        next(CronSim(given, datetime(2000, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise ValueError(f"{given!r} is no cron expression: {str(error).lower()}") from error
    except StopIteration:
        raise ValueError(f"{given!r} names a day that no year has") from None
    return given


def check_timezone(name: str) -> str:
    """Return *name*. Raises ValueError if this machine's time zone database does not have it."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # a name with dots or of a folder gives errors of their own
        known = False
    else:
        known = name != LOCAL_ZONE
    if not known:
        raise ValueError(f"there is no time zone {show_value(name)}: give an IANA name such as Europe/Berlin, or UTC")
    return name


def describe_cron(expression: str) -> str:
    """Return a valid cron expression as a sentence: ``At 06:00 on Monday through Friday``."""
    return CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)).explain()


def times_after(cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of a schedule after a time, in UTC.

    A time that daylight saving skips is the first minute after the gap; one that it repeats is the first of both.
    """
    last = after
    for local in CronSim(cron, after.astimezone(ZoneInfo(timezone))):
        at = local.astimezone(UTC)
        if at > last:  # within a repeated hour, cronsim goes on with the first of both again
            last = at
            yield at


def next_time(cron: str, timezone: str, after: datetime) -> datetime:
    """Return the next time of a schedule after a time, in UTC."""
    return next(times_after(cron, timezone, after))


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The times of a schedule that are due: the latest, and how many before it; at most 1,000 are counted."""

    latest: datetime
    missed: int = 0

    def describe(self) -> str:
        """Return how many times were left out as a sentence, or ""."""
        if not self.missed:
            return ""
        more = "more than " if self.missed > MAX_COUNTED else ""
        count = f"{more}{min(self.missed, MAX_COUNTED):,} earlier {'time was' if self.missed == 1 else 'times were'}"
        return f"{count} left out: nothing ran then"


def find_due(cron: str, timezone: str, first: datetime, now: datetime) -> DueTimes:
    """Return the due times of a schedule, of which *first*, not later than *now*, is the first one."""
    latest, missed = first, 0
    for at in times_after(cron, timezone, first):
        if at > now:
            break
        latest, missed = at, missed + 1
        if missed > MAX_COUNTED:
            return DueTimes(_last_until(cron, timezone, now), missed)
    return DueTimes(latest, missed)


def _last_until(cron: str, timezone: str, now: datetime) -> datetime:
    """Return the last time of a schedule until *now*."""
    until = now.replace(microsecond=0) + timedelta(seconds=1)
    for local in CronSim(cron, until.astimezone(ZoneInfo(timezone)), reverse=True):
        at = local.astimezone(UTC)
        before = at - timedelta(seconds=1)
        if at <= now and next_time(cron, timezone, before) == at:  # at a change of the clock, it may be a time of none
            return at
    raise AssertionError("a schedule with a thousand times before now has a last one")  # pragma: no cover
