"""Regular expressions whose time to match is proportional to the text, for patterns that people and models write.

Python's ``re`` can take practically forever for a pattern of ten characters. These are matched by pydantic's engine,
Rust's ``regex``, which has no look-around and no backreferences in exchange.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.errors import ConfigError

MAX_PATTERN_CHARS = 2_000
_GLOB_PART = re.compile(r"(\*\*/?|\*|\?)")
_MEANINGS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ConfigError(f"the pattern has {len(pattern):,} characters; {MAX_PATTERN_CHARS:,} are allowed")


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

    Raises ConfigError for a pattern that is too long.
    """
    _check_length(pattern)
    parts = _GLOB_PART.split(pattern)
    return search_pattern(rf"\A(?:{''.join(_MEANINGS.get(part, re.escape(part)) for part in parts)})\z", path)
