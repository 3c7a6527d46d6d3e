"""A shop in forty modules that log free text in three forms, and the catalogue of the events that they shall tell."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

AREAS = {
    "billing": "invoice refund voucher reminder deposit payout receipt discount instalment settlement",
    "shipping": "parcel pallet route pickup label customs container carrier return delivery",
    "catalog": "article variant bundle price picture category supplier stock rating promotion",
    "accounts": "customer address consent password session wishlist coupon newsletter complaint membership",
}


class Call(NamedTuple):
    """A call of the old log in its source, and the event that takes its place: level, name, values by field."""

    source: str
    level: str
    event: str
    values: dict[str, str]

    @property
    def replaced(self) -> str:
        """The source of the new call."""
        values = ", ".join(f"{field}={value}" for field, value in self.values.items())
        return f'events.{self.level}("{self.event}", {values})'


OLD_IMPORT = "from shop.oldlog import log"
NEW_IMPORT = "from shop import events"

MODULE = '''"""{Plural} of the shop: they are made, checked, changed and closed here.

A {noun} begins as a draft. It is checked against the limits of its owner, then it is open until it is closed or
dropped.
Other modules import the functions only; the table of the {plural} belongs to this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field

{import_line}

MOST_OPEN = {most_open}
"""{Plural} that one owner may have open at the same time."""

TOO_OLD_DAYS = {too_old}
"""A draft that nobody has touched for so long is dropped by `drop_old`."""


@dataclass
class {Class}:
    """A {noun} with its owner, its {measure} and its history."""

    number: str
    owner: str
    {measure}: int
    state: str = "draft"
    age_days: int = 0
    notes: list[str] = field(default_factory=list)


_known: dict[str, {Class}] = {{}}


def make_{noun}(number: str, owner: str, {measure}: int) -> {Class} | None:
    """Make a {noun} as a draft; None if it has no {measure}, or if the number is taken.

    Numbers come from the counter of the site. They are not checked here for their form: the counter does that, and an
    imported {noun} may have a number of another form.
    """
    if {measure} <= 0 or number in _known:
        {refused}
        return None
    made = {Class}(number, owner, {measure})
    made.notes.append(f"made for {{owner}}")
    _known[number] = made
    return made


def open_{noun}(number: str) -> bool:
    """Open a draft, unless its owner has too many open {plural} already."""
    found = _known.get(number)
    if found is None or found.state != "draft":
        return False
    count = sum(each.state == "open" and each.owner == found.owner for each in _known.values())
    if count >= MOST_OPEN:
        {limited}
        return False
    found.state = "open"
    found.notes.append("opened")
    return True


def change_{noun}(number: str, {measure}: int) -> int:
    """Change the {measure} of a {noun}, and return the difference to the one before; 0 if nothing changes."""
    found = _known.get(number)
    if found is None or found.state == "closed":
        return 0
    before, found.{measure} = found.{measure}, max(0, {measure})
    difference = found.{measure} - before
    if difference:
        found.notes.append(f"{measure} {{before}} -> {{found.{measure}}}")
    return difference


def close_{noun}(number: str, reason: str) -> bool:
    """Close an open {noun}; the reason is kept in its notes."""
    found = _known.get(number)
    if found is None or found.state != "open":
        return False
    found.state = "closed"
    found.notes.append(reason)
    {closed}
    return True


def drop_old(days: int) -> list[str]:
    """Let {plural} grow older by some days, drop the drafts that are too old, and return their numbers."""
    dropped = []
    for each in _known.values():
        each.age_days += days
        if each.state == "draft" and each.age_days > TOO_OLD_DAYS:
            each.state = "dropped"
            dropped.append(each.number)
    return sorted(dropped)


def sum_open(owner: str) -> int:
    """Return the sum of the {measure}s of an owner's open {plural}."""
    return sum(each.{measure} for each in _known.values() if each.owner == owner and each.state == "open")
'''

MEASURES = ("amount", "weight", "volume", "points", "score")
LEVELS = {"I": "info", "W": "warning", "E": "error"}


def calls_of(number: int, noun: str) -> dict[str, Call]:
    """Return the calls of a module by their place. Their form, level and fields differ from module to module.

    The letter of some calls is not that of the level which the catalogue wants.
    """
    measure = MEASURES[number % len(MEASURES)]
    wanted = ("E", "W", "I") if number % 3 else ("W", "I", "I")
    levels = (wanted[0], "I", wanted[2]) if number % 5 == 0 else wanted
    texts = (
        (
            f'log("{levels[0]}", "{noun} %s of %s refused: {measure} is %d" % (number, owner, {measure}))',
            f'log("{levels[0]}", f"refused a {noun} for {{owner}}: number {{number}}, {measure} {{{measure}}}")',
            f'log("{levels[0]}", "no {noun} " + number + " for " + owner + ", its {measure}: " + str({measure}))',
        ),
        (
            f'log("{levels[1]}", f"{{found.owner}} has {{count}} open ones, {noun} {{number}} stays a draft")',
            f'log("{levels[1]}", "{noun} " + number + " not opened: " + str(count) + " of " + found.owner + " are")',
            f'log("{levels[1]}", "limit reached by %s (%d), {noun} %s" % (found.owner, count, number))',
        ),
        (
            f'log("{levels[2]}", "closed " + number + " after " + str(found.age_days) + " days: " + reason)',
            f'log("{levels[2]}", "{noun} %s closed (%s) at an age of %d" % (number, reason, found.age_days))',
            f'log("{levels[2]}", f"{noun} {{number}}: closed, {{reason}}, {{found.age_days}} days old")',
        ),
    )
    events = (
        ("refused", f"{noun}_refused", {"number": "number", "owner": "owner", measure: measure}),
        ("limited", f"{noun}_limit_reached", {"number": "number", "owner": "found.owner", "open": "count"}),
        ("closed", f"{noun}_closed", {"number": "number", "reason": "reason", "age_days": "found.age_days"}),
    )
    return {
        place: Call(forms[(number + shift) % 3], LEVELS[level], event, values)
        for shift, (forms, level, (place, event, values)) in enumerate(zip(texts, wanted, events, strict=True))
    }


def modules() -> dict[str, tuple[str, dict[str, Call]]]:
    """Return the source and the calls of each module, by its path."""
    found: dict[str, tuple[str, dict[str, Call]]] = {}
    nouns = [(area, noun) for area, listed in AREAS.items() for noun in listed.split()]
    for number, (area, noun) in enumerate(nouns):
        calls = calls_of(number, noun)
        plural = f"{noun[:-1]}ies" if noun[-1] == "y" else noun if noun[-1] == "s" else f"{noun}s"
        source = MODULE.format(
            noun=noun,
            plural=plural,
            Plural=plural.capitalize(),
            Class=noun.capitalize(),
            measure=MEASURES[number % len(MEASURES)],
            import_line=OLD_IMPORT,
            most_open=3 + number % 7,
            too_old=20 + number,
            **{place: call.source for place, call in calls.items()},
        )
        found[f"shop/{area}/{noun}.py"] = (source, calls)
    return found


def forty_modules(project: Path) -> None:
    """Write the modules below ``shop/`` and the catalogue ``docs/events.csv``."""
    (project / "docs").mkdir(exist_ok=True)
    rows = [["module", "function", "level", "event", "fields"]]
    places = {"refused": "make", "limited": "open", "closed": "close"}
    for path, (source, calls) in modules().items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(source, encoding="utf-8")
        (project / path).with_name("__init__.py").write_text("", encoding="utf-8")
        function = Path(path).stem
        for place, call in calls.items():
            rows.append([path, f"{places[place]}_{function}", call.level, call.event, " ".join(call.values)])
    with (project / "docs" / "events.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
