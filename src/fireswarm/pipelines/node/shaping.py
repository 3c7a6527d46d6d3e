"""Functions of which the requests and items of a node are made. A generated node has a copy of this file.

MISSING stands for a value that is not there: each function passes it on, and an object is made without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

MISSING: Any = object()
"""Stands for a value that is not given and not sent."""

PLAIN = "!$&'()*+,;=:@~"
"""Characters that may stand in one part of an address as they are (RFC 3986, pchar)."""

MAX_PAGES = 10_000
"""Most pages of one answer."""


class Unrecorded(ValueError):
    """A parameter has a value for which the node's own code was not recorded."""


def take(parameters: Any, name: str) -> Any:
    """Return the value at a dotted name, or MISSING. Keys may have dots themselves, such as ``@odata.nextLink``."""
    found: Any = parameters
    parts = name.split(".") if name else []
    while parts:
        if isinstance(found, list) and parts[0].isdecimal() and int(parts[0]) < len(found):
            found, parts = found[int(parts[0])], parts[1:]
            continue
        if not isinstance(found, Mapping):
            return MISSING
        inner: Mapping[str, Any] = found
        keys = (".".join(parts[:size]) for size in range(1, len(parts) + 1))
        key = next((key for key in keys if key in inner), None)
        if key is None:
            return MISSING
        found, parts = inner[key], parts[key.count(".") + 1 :]
    return found


def nonempty(value: Any, otherwise: Any = MISSING) -> Any:
    """Return *value*, or *otherwise* if it is missing or empty."""
    return otherwise if value is MISSING or not value else value


def text(value: Any) -> str:
    """Return *value* as JavaScript writes it within a text; "" if it is missing."""
    if value is MISSING:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(text, value)) if isinstance(value, list) else str(value)


def within(pattern: str, *values: Any) -> Any:
    """Return *values* within a text that has {} in their places."""
    if any(value is MISSING for value in values):
        return MISSING
    pieces = pattern.split("{}")
    return pieces[0] + "".join(text(value) + piece for value, piece in zip(values, pieces[1:], strict=True))


def quote_part(value: Any) -> str:
    """Return *value* as one part of an address, with all that is not a letter or a digit encoded."""
    return quote(text(value), safe="")


def plain(value: Any) -> str:
    """Return *value* as one part of an address, with what may stand there left as it is."""
    return quote(text(value), safe=PLAIN)


def otherwise(value: Any, constant: Any) -> Any:
    """Return *value*, or *constant* if it is missing."""
    return constant if value is MISSING else value


def keep(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return *content* without what is missing."""
    return {name: value for name, value in content.items() if value is not MISSING}


def optional(content: Mapping[str, Any]) -> Any:
    """Return *content* without what is missing; MISSING if nothing is left."""
    return keep(content) or MISSING


def content(value: Any) -> Any:
    """Return what a request contains in one place: None if that is missing or empty."""
    return None if value is MISSING or not value else value


def list_all(*entries: Any) -> Any:
    """Return the entries as a list; MISSING if one is missing."""
    return MISSING if any(entry is MISSING for entry in entries) else list(entries)


def list_present(*entries: Any) -> list[Any]:
    """Return the entries that are not missing, as a list."""
    return [entry for entry in entries if entry is not MISSING]


def each(source: Any, make: Callable[[Any], Any]) -> Any:
    """Return what *make* returns for each entry of a list."""
    return MISSING if source is MISSING else [make(entry) for entry in source]


def map_keyed(source: Any, make: Callable[[Any], tuple[str, Any]]) -> Any:
    """Return an object of the names and values that *make* returns for each entry of a list."""
    return MISSING if source is MISSING else dict(make(entry) for entry in source)


def choose(name: str, value: Any, *table: tuple[Any, Callable[[], Any]]) -> Any:
    """Return what belongs to the value of parameter *name*. Raises Unrecorded for other values."""
    for option, make in table:
        if option is value or (type(option) is type(value) and option == value):
            return make()
    told = "no value" if value is MISSING else repr(value)
    raise Unrecorded(f"what is sent for {name} = {told} is not known")


def items(answer: Any, name: str = "") -> list[Any]:
    """Return the items at a dotted name of the answer."""
    found = take(answer, name)
    return [] if found is MISSING else found if isinstance(found, list) else [found]


def follow(first: Any, cursor: str, request: Callable[[Any], Any]) -> list[Any]:
    """Return the first page and the further ones: while a page has something at *cursor*, *request* asks for the next.

    Raises ValueError after `MAX_PAGES`: an API that always names a next page would be asked without end.
    """
    pages = [first]
    while nonempty(take(pages[-1], cursor)) is not MISSING:
        if len(pages) >= MAX_PAGES:
            raise ValueError(f"the API named a next page {MAX_PAGES:,} times; ask for fewer items")
        pages.append(request(pages[-1]))
    return pages


def gather(pages: Iterable[Any], name: str = "") -> list[Any]:
    """Return the items at a dotted name of all pages."""
    return [item for page in pages for item in items(page, name)]


def split(value: str) -> list[str]:
    """Return the words of a text with commas."""
    return [word.strip() for word in value.split(",")]


def divide(value: str) -> list[str]:
    """Return the words of a text with commas, with their spaces."""
    return value.split(",")


def wrap(value: Any) -> list[Any]:
    """Return a list with this one entry."""
    return [value]


def join(value: list[Any]) -> str:
    """Return the entries with commas between them."""
    return ",".join(map(text, value))


def join_spaced(value: list[Any]) -> str:
    """Return the entries with commas and spaces between them."""
    return ", ".join(map(text, value))


def parse(value: str) -> Any:
    """Return what a JSON text contains."""
    return json.loads(value)


def compact(value: Any) -> str:
    """Return *value* as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def number(value: str) -> float:
    """Return the number in a text."""
    found = float(value)
    return int(found) if found.is_integer() else found


def upper(value: str) -> str:
    """Return *value* in capitals."""
    return value.upper()


def lower(value: str) -> str:
    """Return *value* in small letters."""
    return value.lower()


def _instant(value: str) -> datetime:
    found = datetime.fromisoformat(value)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def seconds(value: str) -> int:
    """Return a date as seconds since 1970."""
    return int(_instant(value).timestamp())


def milliseconds(value: str) -> int:
    """Return a date as milliseconds since 1970."""
    return round(_instant(value).timestamp() * 1000)


def day(value: str) -> str:
    """Return the day of a date in UTC, such as 2026-01-02."""
    return f"{_instant(value):%Y-%m-%d}"


def to_second(value: str) -> str:
    """Return a date in UTC without fractions of a second, such as 2026-01-02T03:04:05Z."""
    return f"{_instant(value):%Y-%m-%dT%H:%M:%SZ}"


def with_offset(value: str) -> str:
    """Return a date in UTC such as 2026-01-02T03:04:05+00:00."""
    return f"{_instant(value):%Y-%m-%dT%H:%M:%S+00:00}"


def local(value: str) -> str:
    """Return a date in UTC without a zone, such as 2026-01-02T03:04:05."""
    return f"{_instant(value):%Y-%m-%dT%H:%M:%S}"


def iso(value: str) -> str:
    """Return a date in UTC as JavaScript's toISOString writes it."""
    return _instant(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")


STEPS: Mapping[str, Callable[[Any], Any]] = {
    step.__name__: step
    for step in (split, divide, join, join_spaced, parse, compact, text, number, upper, lower)
    + (seconds, milliseconds, day, to_second, with_offset, local, iso)
    + (items, wrap)
}
"""What may be made of one value, by its name."""


def through(step: str, value: Any) -> Any:
    """Return what a step makes of *value*; MISSING stays, and an empty text too. Raises ValueError and TypeError."""
    return value if value is MISSING or value == "" else STEPS[step](value)
