"""Commit and read times in microseconds since 1970. Commit times are unique, and no time goes back."""

from __future__ import annotations

from collections.abc import Callable


class CommitClock:
    """Returns times from a nanosecond clock.

    A commit time is later than every time returned before, and a read time is not earlier than any commit time. A read
    at
    ``now()`` therefore sees all commits up to it, and no later commit can get an earlier time.
    """

    def __init__(self, nanoseconds: Callable[[], int], last_us: int = 0) -> None:
        self._nanoseconds = nanoseconds
        self._last_us = last_us

    def next(self) -> int:
        """Return a commit time, later than any time returned before."""
        self._last_us = max(self._nanoseconds() // 1000, self._last_us + 1)
        return self._last_us

    def now(self) -> int:
        """Return a read time, not earlier than any time returned before."""
        self._last_us = max(self._nanoseconds() // 1000, self._last_us)
        return self._last_us
