"""Search texts by a model's pattern in a process that can be killed.

Python's ``re`` can take practically forever for a pattern of ten characters, and holds the interpreter meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fireswarm.errors import InvalidInput
from fireswarm.processes.child_pool import in_own_process

MAX_PATTERN_CHARS = 500
MAX_LINE_CHARS = 300
Found = tuple[list[dict[str, Any]], int]
"""The first matches, and the total number of matching lines."""


async def search(pattern: str, texts: Sequence[tuple[str, str]], limit: int, seconds: float) -> Found:
    """Return matching lines of named texts. Raises InvalidInput for a pattern that is invalid or takes too long."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidInput(f"the pattern has {len(pattern):,} characters; {MAX_PATTERN_CHARS} are allowed")
    try:
        fault, matches, total = await in_own_process(_matches, pattern, list(texts), limit, seconds=seconds)
    except TimeoutError as error:
        raise InvalidInput(
            f"the pattern took longer than {seconds:g} s: avoid nested repetitions such as (a+)+, "
            "or narrow path_pattern"
        ) from error
    if fault:
        raise InvalidInput(f"invalid regular expression {pattern!r}: {fault}")
    return matches, total


def _matches(pattern: str, texts: list[tuple[str, str]], limit: int) -> tuple[str, list[dict[str, Any]], int]:
    """Return the error of an invalid pattern or "", the first matches, and the number of matches."""
    matches: list[dict[str, Any]] = []
    total = 0
    try:
        compiled = re.compile(pattern)
        for path, text in texts:
            for number, line in enumerate(text.splitlines(), 1):
                if compiled.search(line) is not None:
                    total += 1
                    if len(matches) < limit:
                        matches.append({"path": path, "line": number, "text": line[:MAX_LINE_CHARS]})
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) or type(error).__name__, [], 0
    return "", matches, total
