"""Notes of twenty gauges at a river: a table of daily readings, and remarks of the keeper, some of which matter."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

SEED = 20260612
DAYS = 92
FIRST_DAY = date(2026, 3, 1)
STATIONS = (
    *("Aldersee", "Birkfurt", "Chausseebruck", "Dornau", "Eibenwehr", "Farnbach", "Gollenstein", "Haslach", "Inzell"),
    *("Jettingen", "Kaltental", "Lindenfurt", "Moosbruck", "Nassau Mill", "Oberwehr", "Pappelhain", "Quellenau"),
    *("Rossfurt", "Sandau", "Tannwehr"),
)
KEEPERS = ("A. Brandt", "M. Okoye", "S. Lind", "J. Rieger", "P. Costa")

EVENTS = (
    "the gauge was moved 4 m upstream after the bank slid; the zero was levelled again and is 3 cm lower than before",
    "a log jammed at the weir from {from_day} to {to_day}: the level in these days is up to 20 cm too high",
    "the thermometer showed 1.5 degrees too much until it was changed on {to_day}; values before it are not corrected",
    "oil film below the road bridge, reported to the authority at once; source is the drain of the petrol station",
    "the turbidity sensor was covered with algae and was cleaned; the days before may be too high",
    "people of the village say that the high water stood 11 cm above the mark of 2013; I saw the wet line on the wall",
    "the pump house took water without notice, the level fell by 15 cm within an hour and rose again at night",
    "fish died at the outlet of the fish farm, about forty; water samples were taken by the office",
)
SMALL_TALK = (
    "read in the morning as usual", "clear weather, the water is low", "cleaned the stairs at the gauge",
    "two kingfishers at the bridge", "the grass at the bank was cut",
    "spoke with the keeper upstream, all is well there", "fog until noon, read in the afternoon",
    "new batteries in the logger", "the path is muddy, boots needed",
    "a school class visited the gauge", "painted the numbers of the staff anew", "light rain in the night",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Station:
    """A station: its file, its text, and what a report has to say of it."""

    number: int
    name: str
    path: str
    text: str
    limit: int
    highest: int
    highest_day: date
    mean_temperature: float
    days_above_limit: int
    event: str
    event_line: int


def stations() -> list[Station]:
    """Return the stations with their notes, the same ones each time."""
    source = random.Random(SEED)
    return [_station(number, name, source) for number, name in enumerate(STATIONS, 1)]


def twenty_stations(project: Path) -> None:
    """Write the notes below ``notes/``."""
    (project / "notes").mkdir(exist_ok=True)
    for station in stations():
        (project / station.path).write_text(station.text, encoding="utf-8")


def _station(number: int, name: str, source: random.Random) -> Station:
    limit, level = source.choice((12, 15, 20, 25)), source.randint(80, 160)
    flood = source.randint(20, 70)
    levels, temperatures, turbidities = list[int](), list[float](), list[int]()
    for day in range(DAYS):
        rise = max(0, 90 - 14 * abs(day - flood))
        level = max(40, min(230, level + source.randint(-7, 7)))
        levels.append(level + rise)
        temperatures.append(round(4 + day * 0.13 + source.uniform(-1.5, 1.5), 1))
        turbidities.append(source.randint(3, limit + 2) + rise // 9)
    levels[flood] = max(levels) + source.randint(3, 9)
    lines = [
        f"# Gauge {number:02}: {name}",
        "",
        f"Keeper: {source.choice(KEEPERS)}. River kilometre {12 + 7 * number}. Level in cm above the zero of the",
        f"gauge, temperature in degrees Celsius, turbidity in NTU; the limit of the turbidity is {limit} NTU here.",
        "",
        "## Readings",
        "",
        "| day | level | temperature | turbidity |",
        "| --- | --- | --- | --- |",
        *(f"| {_day(day)} | {levels[day]} | {temperatures[day]:.1f} | {turbidities[day]} |" for day in range(DAYS)),
        "",
        "## Remarks",
        "",
    ]
    event_day = flood + source.randint(2, 12)
    talks = {day: source.choice(SMALL_TALK) for day in range(2, DAYS, 3)}
    places = {"from_day": _day(event_day - 4), "to_day": _day(event_day)}
    event = EVENTS[(number * 3) % len(EVENTS)].format(**places)
    talks[event_day] = event
    lines += [f"- {_day(day)}: {talks[day]}" for day in sorted(talks)]
    return Station(
        number, name, f"notes/gauge-{number:02}.md", "\n".join(lines) + "\n", limit, max(levels),
        FIRST_DAY + timedelta(days=levels.index(max(levels))), round(sum(temperatures) / DAYS + 1e-9, 1),
        sum(turbidity > limit for turbidity in turbidities), event, lines.index(f"- {_day(event_day)}: {event}") + 1,
    )  # fmt: skip


def _day(number: int) -> str:
    return str(FIRST_DAY + timedelta(days=number))
