"""Commit and read times: microseconds since 1970, never twice the same commit time, never going back."""

from __future__ import annotations

from collections.abc import Callable


class CommitClock:
    """Hands out times from a nanosecond clock.

    A commit's time lies after every time handed out before, and a read's time not before any commit's: so a read at
    ``now()`` sees all commits up to it, and none that comes later can claim an earlier time.
    """

    def __init__(self, nanoseconds: Callable[[], int], last_us: int = 0) -> None:
        self._nanoseconds = nanoseconds
        self._last_us = last_us

    def next(self) -> int:
        """A commit time, later than any other time handed out."""
        self._last_us = max(self._nanoseconds() // 1000, self._last_us + 1)
        return self._last_us

    def now(self) -> int:
        """A read time, not earlier than any time handed out."""
        self._last_us = max(self._nanoseconds() // 1000, self._last_us)
        return self._last_us
