"""Base classes of the contracts: frozen models, role and id formats, JSON values, UTC timestamps."""

from __future__ import annotations

import json
import re
import reprlib
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeGuard, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import to_json

RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
"""A role name: lowercase letters, digits and hyphens. Five roles ship in ``roles/``; users can add more."""

OWN_NAMES = frozenset({"operator", "parent", "person", "user", "human", "system", "fireswarm"})
"""Names of those who are no agent of a swarm: no role and no task of a plan is called so."""


def check_no_own_name(name: str) -> str:
    """Return *name*. Raises ValueError for a name under which a person or fireswarm speaks."""
    if name.strip("-._").casefold() in OWN_NAMES:
        raise ValueError(f"{name!r} is a name of those who give work to agents: choose another one")
    return name


MAX_ID_CHARS = 512
MAX_ID_BYTES = 1500
"""Firestore's limit. Ours is in characters too, so that a path in an error message stays readable."""

_RESERVED_ID = re.compile(r"__(?!id-?\d{1,19}__$).+__", re.DOTALL)
"""``__id7__`` is allowed: documents that come from Datastore have such ids."""


def is_document_id(value: object) -> TypeGuard[str]:
    """Return True for an id that Firestore accepts, up to 512 characters: no slash, not ``.``, ``..`` or ``__x__``."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_ID_CHARS
        and len(value.encode(errors="replace")) <= MAX_ID_BYTES
        and "/" not in value
        and value not in (".", "..")
        and not _RESERVED_ID.fullmatch(value)
    )


def _check_document_id(value: str) -> str:
    if not is_document_id(value):
        raise ValueError(
            f"not a document id: '.', '..' and '__x__' are reserved, and the maximum is {MAX_ID_BYTES:,} bytes"
        )
    return value


DocumentId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_ID_CHARS, pattern=r"^[^/]+$"),
    AfterValidator(_check_document_id),
]
"""A Firestore document id."""

SessionName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128, pattern=r"^[^/\\\x00-\x1f\x7f]+$"),
    AfterValidator(_check_document_id),
]
"""The name of a session. It is part of file names and document ids, so it has no slashes and no control characters."""

MAX_JSON_DEPTH = 20
"""Maximum levels of nesting in Firestore."""


def check_json[T](value: T) -> T:
    """Return *value* if it can be stored and sent: text, 64-bit integers, floats, lists, maps, times.

    NaN and infinities are sent as null by the API. Raises ValueError with the location of the first other value.
    """
    if fault := _json_fault(value, MAX_JSON_DEPTH):
        place, text = fault
        raise ValueError(f"{place.removeprefix('.') or 'it'} {text}")
    return value


def encode_json(value: object) -> bytes:
    """Return a JSON-like value as one line in UTF-8, without spaces; lone surrogates become question marks."""
    try:
        return to_json(value)  # takes a quarter of the time of the standard library's encoder
    except ValueError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _json_fault(value: Any, depth: int) -> tuple[str, str] | None:
    """Return the location of a value that cannot be stored, such as ``.a[0]``, and the reason."""
    if isinstance(value, str):
        return None if value.isascii() or _is_unicode(value) else ("", "is not valid Unicode text")
    if isinstance(value, (dict, Mapping)):
        pairs = cast("Mapping[Any, Any]", value).items()
        if strange := next((key for key, _ in pairs if not isinstance(key, str)), None):
            return "", f"has the key {strange!r}: keys must be strings"
        inner, place = pairs, ".{}"
    elif isinstance(value, (list, tuple)):
        inner, place = enumerate(cast("Sequence[Any]", value)), "[{}]"
    else:
        return ("", fault) if (fault := _scalar_fault(value)) else None
    if not depth:
        return "", f"is nested more than {MAX_JSON_DEPTH} levels deep"
    for key, item in inner:
        if found := _json_fault(item, depth - 1):
            return place.format(key) + found[0], found[1]
    return None


def _scalar_fault(value: Any) -> str:
    match value:
        case None | bool() | float() | datetime():
            return ""
        case int():
            return "" if -(2**63) <= value < 2**63 else "does not fit into 64 bits: store it as a string"
        case _:
            return f"is of type {type(value).__name__}, which JSON does not have"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Json = Annotated[Any, AfterValidator(check_json)]
"""A JSON value as Firestore stores it; timestamps are allowed."""

JsonObject = Annotated[dict[str, Any], AfterValidator(check_json)]
"""A JSON map as Firestore stores it; timestamps are allowed."""


def check_not_blank(text: str) -> str:
    """Return *text*. Raises ValueError if all of it is white space or invisible."""
    if not any(char.isprintable() and not char.isspace() for char in text):
        raise ValueError("is blank: describe the work")
    return text


def as_utc(value: datetime) -> datetime:
    """Return *value* in UTC; a naive timestamp is interpreted as UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Timestamp = Annotated[datetime, AfterValidator(as_utc)]
"""A point in time in UTC, with the microseconds that Firestore stores."""


class Contract(BaseModel):
    """Base of the contracts: frozen, unknown keys rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Stored(BaseModel):
    """Base of stored documents: frozen, unknown fields ignored, so that newer writers do not break older readers."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class SettingsSection(Contract):
    """Base of the sections of a settings file."""


JSON_TYPES = {"tuple_type": "Input should be a list", "dict_type": "Input should be an object"}
"""Messages for validation errors in terms of JSON and YAML instead of Python."""

_NAME = "lower-case letters, digits and {}, with a letter first"

PATTERN_WORDS: Mapping[str, str] = {
    r"^[a-z][a-z0-9-]{0,62}$": f"1 to 63 {_NAME.format('hyphens')}",
    r"^[^/]+$": "no slashes, and is not empty",
    r"^[^/]*$": "no slashes",
    r"^[^/\\\x00-\x1f\x7f]+$": "no slashes, backslashes or control characters",
    r"^[^/\x00-\x1f]{1,100}$": "1 to 100 characters, without slashes and control characters",
    r"^\S+$": "no spaces",
    r"^(gs|https?)://.": "an address that begins with gs://, https:// or http://",
    r"^[a-z][a-z0-9_]{0,49}$": f"1 to 50 {_NAME.format('underscores')}",
    r"^[a-z][a-z0-9_]{0,63}$": f"1 to 64 {_NAME.format('underscores')}",
    r"^[a-z][a-z0-9_-]{0,63}$": f"1 to 64 {_NAME.format('hyphens or underscores')}",
    r"^[a-z][a-z0-9_-]*$": _NAME.format("hyphens or underscores"),
    r"^([a-z][a-z0-9_]{0,19})?$": f"at most 20 {_NAME.format('underscores')}",
    r"^[A-Za-z_][A-Za-z0-9_]{0,63}$": "1 to 64 letters, digits and underscores, with no digit first",
    r"^[a-z0-9][a-z0-9_.-]{0,63}$": "1 to 64 lower-case letters, digits, dots, hyphens and underscores, with a letter "
    "or digit first",
    r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$": "1 to 200 letters, digits, dots, colons, hyphens and underscores, with a "
    "letter or digit first",
    r"^[a-z0-9](_?[a-z0-9-]){0,29}$": "1 to 30 lower-case letters, digits, hyphens and single underscores, with a "
    "letter or digit first",
    r"^[a-z0-9][a-z0-9-]{0,62}$": "1 to 63 lower-case letters, digits and hyphens, with a letter or digit first",
    r"^[a-z0-9][a-z0-9.:-]{0,99}$": "1 to 100 lower-case letters, digits, dots, colons and hyphens, with a letter or "
    "digit first",
    r"^([0-9]{1,9}-[0-9]{1,4})?$": "two numbers joined by a hyphen, such as 3-1",
}
"""Each pattern of a field in words, for errors: what a value of it has. A test finds patterns that are missing here."""


def describe_fault(item: Mapping[str, Any]) -> str:
    """Return the message of one validation error of pydantic in terms of JSON and YAML, without a pattern."""
    if item["type"] == "string_pattern_mismatch":
        return f"Input should have {PATTERN_WORDS.get(item['ctx']['pattern'], 'other characters')}"
    return JSON_TYPES.get(item["type"]) or str(item["msg"])


def explain_validation(error: ValidationError, *, show_given: bool = False) -> str:
    """Describe a validation error in one line, field by field, in terms of JSON and YAML.

    With *show_given*, the beginning of each faulty value is part of it.
    """
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'document'}: {describe_fault(item)}"
        + (f" (given: {show_value(item['input'])})" if show_given else "")
        for item in error.errors()
    )


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def show_value(value: object) -> str:
    """Return the beginning of the repr of any value, also of one whose own repr fails."""
    return _short.repr(value)


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 task``, ``2 tasks``, ``3 entries``."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


_YES = frozenset({"1", "true", "yes", "on", "all"})


def is_yes(value: str | None) -> bool:
    """Return True if an environment variable says yes. Any other value, such as ``0``, ``no`` or none, says no."""
    return (value or "").strip().lower() in _YES


def command_line(*words: str | Path) -> str:
    """Return *words* as a line that a person can paste into a shell. Everything that we print for that is made here."""
    return shlex.join(map(str, words))
