"""Calls in the text of a document: ``GET /links/:id``, blocks of HTTP, and command lines of curl."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CALL = re.compile(
    r"[`*_]*+(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b[`*_:]*+[ \t]++[`*_]*+((?:/|https?://)(?:[^\s`*|<>\"']|<[\w-]++>)*+)"
)
"""A call at the beginning of a line, perhaps in backticks or bold."""

VARIABLE = re.compile(r"(?<=/):([A-Za-z_]\w*+)|(?<=/)<([A-Za-z_][\w-]*+)>")
"""A part of a path that stands for a value, in other forms than braces."""

METHOD = ("-X", "--request")
DATA = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json")
FORM = ("-F", "--form")
ENCODED = "--data-urlencode"
WITH_VALUE = ("-H", "--header", "-u", "--user", "-o", "--output", "-A", "--user-agent", "-b", "--cookie", "--url")
MAX_COMMAND_CHARS = 20_000


@dataclass(slots=True)
class Call:
    """A method and an address, with the names that the text sends in each place."""

    method: str
    address: str
    line: int = 0
    title: str = ""
    names: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    media_type: str = ""
    is_example: bool = False


def normal_path(text: str) -> tuple[str, dict[str, Any]]:
    """Return a path or an address with ``{id}`` for ``:id`` and without its query, and the names in the query."""
    address, _, query = text.rstrip(".,;:)").partition("?")
    path = VARIABLE.sub(lambda found: f"{{{found[1] or found[2]}}}", address.partition("#")[0])
    path = path.rstrip("/") if len(path) > 1 else path
    return path, dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)) if query else {}


MAX_FIELDS = 200


def call_in(text: str, line: int) -> Call | None:
    """Return the call at the beginning of a text."""
    found = CALL.match(text.strip())
    if found is None:
        return None
    path, query = normal_path(found[2])
    title = re.sub(r"^HTTP/[\d.]+", "", text.strip()[found.end() :].strip("`*_ \t-:|"))
    return Call(found[1], path, line, title.strip(" -:"), {"query": query} if query else {})


def calls_in_block(text: str, line: int) -> Iterator[Call]:
    """Yield the calls of a block of code, whose first line has this number: lines with a method, or curl."""
    lines = text.splitlines()
    for number, each in enumerate(lines):
        if (call := call_in(each, line + number)) is not None:
            _read_http(call, lines[number + 1 :])
            yield call
    joined = re.sub(r"\\\n[ \t]*", " ", text)
    if len(joined) <= MAX_COMMAND_CHARS and re.search(r"(?m)^[ \t]*+[$%>]?[ \t]*+curl\b", joined):
        at = next((number for number, each in enumerate(lines) if "curl" in each), 0)
        for command in joined.splitlines():
            if (call := _read_curl(command, line + at)) is not None:
                yield call


def _read_http(call: Call, rest: list[str]) -> None:
    """Add what follows the line of a call: headers, and after an empty line the body."""
    for number, each in enumerate(rest):
        if not each.strip():
            _add_json(call, "\n".join(rest[number + 1 :]))
            return
        name, colon, value = each.partition(":")
        if not colon or not re.fullmatch(r"[\w-]+", name.strip()):
            return
        if name.strip().lower() == "host" and call.address.startswith("/"):
            call.names.setdefault("host", {})[value.strip()] = ""
        elif name.strip().lower() == "content-type":
            call.media_type = value.partition(";")[0].strip()


def _add_json(call: Call, text: str) -> bool:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(content, dict):
        call.names.setdefault("body", {}).update(content)
        call.media_type = call.media_type or "application/json"
    return isinstance(content, dict)


def _read_curl(command: str, line: int) -> Call | None:
    try:
        words = shlex.split(command.strip().lstrip("$%> \t"))
    except ValueError:
        return None
    if not words or words[0] != "curl":
        return None
    call = Call("", "", line, is_example=True)
    rest = iter(words[1:])
    for word in rest:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name[:2] in ("-X", "-d", "-F", "-H") and len(name) > 2 and not name.startswith("--"):
            name, equals, value = name[:2], "=", name[2:]
        if name in (*METHOD, *DATA, *FORM, ENCODED, *WITH_VALUE):
            value = value if equals else next(rest, "")
            _take_option(call, name, value)
        elif name in ("-G", "--get"):
            call.method = "GET"
        elif not word.startswith("-") and not call.address and "://" in word:
            call.address = word
    if not call.address.startswith(("http://", "https://")):
        return None
    call.address, query = normal_path(call.address)
    if query:
        call.names.setdefault("query", {}).update(query)
    has_body = "body" in call.names or call.media_type
    call.method = call.method or ("POST" if has_body else "GET")
    return call


def _take_option(call: Call, name: str, value: str) -> None:
    if name in METHOD:
        call.method = value.upper()
    elif name == "--url":
        call.address = value
    elif name in FORM:
        call.names.setdefault("body", {})[value.partition("=")[0]] = value.partition("=")[2]
        call.media_type = "multipart/form-data"
    elif name in (*DATA, ENCODED):
        if not _add_json(call, value) and "=" in value:
            fields = dict(parse_qsl(value, keep_blank_values=True, max_num_fields=MAX_FIELDS))
            call.names.setdefault("body", {}).update(fields)
            call.media_type = "application/x-www-form-urlencoded"
    elif name in ("-H", "--header") and value.lower().startswith("content-type:"):
        call.media_type = value.partition(":")[2].partition(";")[0].strip()


def base_of(address: str, path: str) -> str:
    """Return what precedes *path* in an example's address, or "" if the address is no example of it."""
    parts, wanted = urlsplit(address), path.strip("/").split("/")
    given = parts.path.strip("/").split("/")
    tail = given[len(given) - len(wanted) :] if len(given) >= len(wanted) else []
    if not tail or not all(each == one or each.startswith("{") for each, one in zip(wanted, tail, strict=True)):
        return ""
    before = "/".join(given[: len(given) - len(wanted)])
    return f"{parts.scheme}://{parts.netloc}{f'/{before}' if before else ''}"
