"""Texts that match a regular expression, made from the parsed expression. They are no secrets of anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from re import _constants as sre  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any

MOST_BRANCHES = 40
OPEN_REPEAT = 12
"""Length of a repeat without an upper limit, unless its lower limit is larger."""

_CHARS = "a1B2c3D4e5F6b7A8d9E0g1H2j3K4m5N6p7Q8r9S0tuvwxyzfhiklnoqsGIJLMOPRTUVWXYZC-_+/=."


def samples(pattern: str) -> Iterator[str]:
    """Yield texts that *pattern* matches: one for each branch of its alternatives."""
    branches = max((len(value[1]) for value in _alternatives(parser.parse(pattern))), default=1)
    for pick in range(min(branches, MOST_BRANCHES)):
        yield _sample(parser.parse(pattern), pick)


def _alternatives(items: Any) -> Iterator[Any]:
    for kind, value in items:
        if kind is sre.BRANCH:
            yield value
        for inner in _inner(kind, value):
            yield from _alternatives(inner)


def _inner(kind: Any, value: Any) -> Sequence[Any]:
    if kind is sre.BRANCH:
        return value[1]
    if kind is sre.SUBPATTERN:
        return [value[3]]
    return [value[2]] if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) else []


def _sample(items: Any, pick: int) -> str:
    text = ""
    for kind, value in items:
        if kind is sre.LITERAL:
            text += chr(value)
        elif kind is sre.IN:
            text += _member(value, 0)
        elif kind is sre.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, inner = value
            times = max(least, min(OPEN_REPEAT, most)) if most > least else least
            text += _repeat(inner, times, pick)
        else:
            text += "".join(_sample(inner, pick) for inner in _inner(kind, value)[pick % _branches(kind, value) :][:1])
    return text


def _branches(kind: Any, value: Any) -> int:
    return len(value[1]) if kind is sre.BRANCH else 1


def _repeat(inner: Any, times: int, pick: int) -> str:
    if len(inner) == 1 and inner[0][0] is sre.IN:
        return "".join(_member(inner[0][1], place) for place in range(times))
    return _sample(inner, pick) * times


def _member(items: Any, place: int) -> str:
    """Return a character of a class; letters and digits take turns where the class has both."""
    members = [char for char in _CHARS if _is_in(items, char)]
    return (
        members[place % len(members)] if members else next(chr(code) for code in count(32) if _is_in(items, chr(code)))
    )


def _is_in(items: Any, char: str) -> bool:
    negated = items[0][0] is sre.NEGATE
    return negated != any(_is_one(kind, value, char) for kind, value in items)


def _is_one(kind: Any, value: Any, char: str) -> bool:
    if kind is sre.LITERAL:
        return chr(value) == char
    if kind is sre.RANGE:
        return value[0] <= ord(char) <= value[1]
    classes = {
        sre.CATEGORY_DIGIT: char.isdigit(), sre.CATEGORY_SPACE: char.isspace(), sre.CATEGORY_WORD: char.isalnum(),
        sre.CATEGORY_NOT_SPACE: not char.isspace(),
    }  # fmt: skip
    return kind is sre.CATEGORY and classes[value]
