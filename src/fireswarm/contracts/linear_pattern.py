"""Regular expressions that match in linear time, for patterns written by people and models.

Python's ``re`` can take practically forever for a pattern of ten characters. These patterns use pydantic's engine,
Rust's ``regex``, which has no look-around and no backreferences.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.errors import ConfigError

MAX_PATTERN_CHARS = 2_000
MAX_ALTERNATIVES = 64
"""Maximum number of alternatives in all braces of a model's glob."""

_GLOB_PART = re.compile(r"(\*\*/?|[*?{},])")
_MEANINGS = {"**/": "(?:[^/]+/)*", "**": "(?s:.)*", "*": "[^/]*", "?": "[^/]"}


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ConfigError(f"the pattern has {len(pattern):,} characters; at most {MAX_PATTERN_CHARS:,} are allowed")


@lru_cache(maxsize=1_000)
def _compile(pattern: str) -> SchemaValidator:
    _check_length(pattern)
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True, regex_engine="rust-regex"))
    except SchemaError as error:
        reason = str(error).rstrip().rpartition("\n")[2].strip().removeprefix("error: ")
        raise ConfigError(
            f"the pattern {truncate(pattern, MAX_LABEL_CHARS)!r} cannot be used: {reason}. "
            "Write it without look-ahead, look-behind and backreferences"
        ) from error


def check_pattern(pattern: str) -> None:
    """Raise ConfigError if *pattern* is invalid, too long, or needs more than linear time."""
    _compile(pattern)


def search_pattern(pattern: str, text: str) -> bool:
    """Return True if *pattern* matches anywhere in *text*. Raises ConfigError as `check_pattern` does."""
    return _compile(pattern).isinstance_python(text.encode("utf-8", "replace").decode())


def match_glob(pattern: str, path: str) -> bool:
    """Return True if a glob matches the whole *path*: ``*`` and ``?`` within a folder, ``**`` across folders.

    ``{a,b}`` matches one of the alternatives, which are globs. Braces without a comma or a closing brace are plain
    characters. Raises ConfigError for a pattern that is too long.
    """
    return search_pattern(_translate_glob(pattern)[0], path)


def check_glob(pattern: str) -> None:
    """Raise ConfigError if a glob is too long or has more than MAX_ALTERNATIVES."""
    expression, alternatives = _translate_glob(pattern)
    if alternatives > MAX_ALTERNATIVES:
        raise ConfigError(f"the braces have {alternatives:,} alternatives; at most {MAX_ALTERNATIVES} are allowed")
    check_pattern(expression)


@lru_cache(maxsize=1_000)
def _translate_glob(glob: str) -> tuple[str, int]:
    """Return the regular expression of a glob, and the number of alternatives in its braces. Raises ConfigError."""
    _check_length(glob)
    parts = _GLOB_PART.split(glob)
    expressions = [_MEANINGS.get(part, re.escape(part)) for part in parts]
    braces: list[list[int]] = []  # position of each open brace and of its commas
    alternatives = 0
    for place, part in enumerate(parts):
        if part == "{":
            braces.append([place])
        elif part == "," and braces:
            braces[-1].append(place)
        elif part == "}" and braces and len(choice := braces.pop()) > 1:
            alternatives += len(choice)
            expressions[choice[0]], expressions[place] = "(?:", ")"
            for comma in choice[1:]:
                expressions[comma] = "|"
    return rf"\A(?:{''.join(expressions)})\z", alternatives
