"""Read the lines of a timesheet."""

import re
from dataclasses import dataclass
from datetime import date

LINE = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)\s+(?P<from>\d\d?:\d\d)-(?P<to>\d\d?:\d\d)(?:\s+pause\s+(?P<pause>\d+))?(?:\s+(?P<note>.*))?$"
)


@dataclass(frozen=True)
class Entry:
    """A stretch of work on one day. ``minutes`` are without the pause."""

    day: date
    minutes: int
    note: str = ""


def minutes_of(text: str) -> int:
    """Return the minutes since midnight of a time such as 9:30."""
    hours, minutes = map(int, text.split(":"))
    if hours > 24 or minutes > 59 or (hours == 24 and minutes):
        raise ValueError(f"{text} is no time of the day")
    return hours * 60 + minutes


def parse(text: str) -> list[Entry]:
    """Return the entries of a timesheet; empty lines and comments after # are skipped. Raises ValueError."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        found = LINE.match(line)
        if found is None:
            raise ValueError(f"line {number} is not understood: {line}")
        worked = minutes_of(found["to"]) - minutes_of(found["from"]) - int(found["pause"] or 0)
        if worked < 0:
            raise ValueError(f"line {number} ends before it begins: {line}")
        entries.append(Entry(date.fromisoformat(found["day"]), worked, (found["note"] or "").strip()))
    return entries
