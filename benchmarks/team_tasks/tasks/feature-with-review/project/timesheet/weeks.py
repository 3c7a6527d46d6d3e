"""Put entries together by week."""

from collections.abc import Iterable
from datetime import date

from timesheet.entries import Entry


def week_of(day: date) -> str:
    """Return the week of a day, such as 2025-W10."""
    return f"{day.year}-W{day.isocalendar().week:02}"


def by_week(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the minutes of each week."""
    weeks: dict[str, int] = {}
    for entry in entries:
        week = week_of(entry.day)
        weeks[week] = weeks.get(week, 0) + entry.minutes
    return weeks
