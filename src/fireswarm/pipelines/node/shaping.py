"""Functions of which the requests and items of a node are made. A generated node has a copy of this file.

MISSING stands for a value that is not there: each function passes it on, and an object is made without it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
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


def quote_address(address: str) -> str:
    """Return an address with spaces and the like encoded, as in a request."""
    return quote(address, safe=f"{PLAIN}/%?[]#")


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


def get_body(parameters: Mapping[str, Any], name: str) -> Any:
    """Return the parameter that is a whole body, or None."""
    return parameters.get(name)


def pick(parameters: Mapping[str, Any], *names: str | tuple[str, str]) -> dict[str, Any]:
    """Return the parameters that are given, as an object. A pair is the name of a parameter, and the one to send."""
    pairs = [(name, name) if isinstance(name, str) else name for name in names]
    return {key: parameters[name] for name, key in pairs if name in parameters}


def parts(*entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return all entries as one object, without what is missing."""
    return keep({name: value for entry in entries for name, value in entry.items()})


def put(
    parameters: Mapping[str, Any], name: str, key: str = "", *, style: str = "form", explode: bool = True
) -> dict[str, Any]:
    """Return what a parameter adds to a query, a form, or headers, in a style of OpenAPI; {} if it is not given."""
    value, key = parameters.get(name), key or name
    if value is None:
        return {}
    if style == "json":
        return {key: compact(value)}
    if style == "deepObject" and isinstance(value, Mapping):
        return dict(_deep(key, value))
    if style == "simple":
        return {key: join_all(value, explode=explode)}
    if explode:
        return dict(value) if isinstance(value, Mapping) else {key: value}
    mark = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}.get(style, ",")
    return {key: join_all(value, mark) if isinstance(value, (list, Mapping)) else value}


def _deep(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    named: Any = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if named is None:
        yield key, value
        return
    for name, inner in named:
        yield from _deep(f"{key}[{name}]", inner)


def join_all(value: Any, mark: str = ",", *, explode: bool = False, encode: Callable[[str], str] = str) -> str:
    """Return a value as one text: entries of a list with *mark* between them, names and values of an object as well."""
    if isinstance(value, Mapping):
        pairs = [(encode(str(name)), encode(_word(inner))) for name, inner in value.items()]
        return mark.join("=".join(pair) if explode else f"{pair[0]}{mark}{pair[1]}" for pair in pairs)
    if isinstance(value, list):
        return mark.join(encode(_word(entry)) for entry in value)
    return encode(_word(value))


def _word(value: Any) -> str:
    if isinstance(value, (Mapping, list)):
        return compact(value)
    return "null" if value is None else text(value)


def part(
    parameters: Mapping[str, Any], name: str, key: str = "", *, style: str = "simple", explode: bool = False
) -> str:
    """Return a parameter as a part of a path, encoded, in a style of OpenAPI."""
    value, key = parameters[name], quote_part(key or name)
    if style == "label":
        return "." + join_all(value, "." if explode else ",", explode=explode, encode=quote_part)
    if style == "matrix" and explode and isinstance(value, list):
        return "".join(f";{key}={quote_part(_word(each))}" for each in value)
    if style == "matrix" and explode and isinstance(value, Mapping):
        return "".join(f";{quote_part(name)}={quote_part(_word(each))}" for name, each in value.items())
    shown = join_all(value, explode=explode, encode=quote_part)
    return f";{key}={shown}" if style == "matrix" else shown


def cookies(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header that sends cookies; {} without one."""
    return {"Cookie": "; ".join(f"{name}={quote_cookie(value)}" for name, value in entries.items())} if entries else {}


def quote_cookie(value: Any) -> str:
    """Return the value of a cookie, with what may not stand there encoded."""
    return quote(join_all(value), safe="!#$%&'()*+-./:<=>?@[]^_`{|}~,")


def basic(user: Any, password: Any) -> Any:
    """Return the header value of HTTP basic authentication; MISSING if one is missing."""
    if user is MISSING or password is MISSING:
        return MISSING
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


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


def to_base64(value: Any) -> str:
    """Return the content of a file, bytes or a text, as base64."""
    return b64encode(value if isinstance(value, bytes) else text(value).encode()).decode()


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
    + (items, wrap, to_base64)
}
"""What may be made of one value, by its name."""


def through(step: str, value: Any) -> Any:
    """Return what a step makes of *value*; MISSING stays, and an empty text too. Raises ValueError and TypeError."""
    return value if value is MISSING or value == "" else STEPS[step](value)
