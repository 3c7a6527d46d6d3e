"""Searches texts by a model's pattern in a process that can be killed.

Python's ``re`` can take longer than the universe is old for a pattern of ten characters, and holds the interpreter
while it does: no thread and no timer in the same process ends it.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_process

from fireswarm.errors import InvalidInput

MAX_PATTERN_CHARS = 500
MAX_LINE_CHARS = 300
START_SECONDS = 30.0
"""What the process itself may take to come up on a busy machine; the searching has a limit of its own."""

Found = tuple[list[dict[str, Any]], int]
"""The first matches, and how many lines match in all."""


async def search(pattern: str, texts: Sequence[tuple[str, str]], limit: int, seconds: float) -> Found:
    """Lines that match, of texts by their names. InvalidInput for a pattern that is none, or takes too long."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidInput(f"the pattern has {len(pattern):,} characters, more than {MAX_PATTERN_CHARS}")
    try:
        with anyio.fail_after(seconds + START_SECONDS):
            fault, matches, total = await anyio.to_process.run_sync(
                _matches, pattern, list(texts), limit, seconds, cancellable=True
            )
    except (TimeoutError, anyio.BrokenWorkerProcess) as error:
        raise InvalidInput(
            f"the pattern took longer than {seconds:g} s: leave out repetitions inside repetitions such as (a+)+, "
            "or narrow path_pattern"
        ) from error
    if fault:
        raise InvalidInput(f"{pattern!r} is no regular expression: {fault}")
    return matches, total


def _matches(
    pattern: str, texts: list[tuple[str, str]], limit: int, seconds: float
) -> tuple[str, list[dict[str, Any]], int]:
    if sys.platform != "win32":  # ended by the system, also when nobody waits any more; counts computing only
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
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
    finally:
        if sys.platform != "win32":
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return "", matches, total
