"""Clocks: the wall clock corrected to the server's, so that leases are judged by one time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import anyio

from fireswarm.ports import Clock

RESYNC_SECONDS = 60.0
"""A better (smaller) offset estimate is kept at most this long, so that a drifting clock is followed."""


class ServerClock:
    """The local clock plus the offset to the server's, learnt from commit times.

    A commit time is at most as late as now on the server, so each observation gives a lower bound of the
    offset; the highest recent bound is the tightest.
    """

    def __init__(self) -> None:
        self._offset = timedelta(0)
        self._learnt_at = float("-inf")

    def now(self) -> datetime:
        """Return the server's time as well as it is known, in UTC."""
        return datetime.now(UTC) + self._offset

    def observe(self, server_time: datetime) -> None:
        """Learn from a time that the server just stamped."""
        bound = server_time - datetime.now(UTC)
        stale = time.monotonic() - self._learnt_at > RESYNC_SECONDS
        if stale or bound > self._offset:
            self._offset = bound
            self._learnt_at = time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait *seconds* of real time."""
        await anyio.sleep(max(0.0, seconds))

    async def wait(self, event: anyio.Event, seconds: float | None) -> bool:
        """Wait for *event*, at most *seconds* (None: as long as it takes); return whether it happened."""
        with anyio.move_on_after(seconds):
            await event.wait()
        return event.is_set()


class Bell:
    """An event that can be rung again and again; a ring that nobody heard yet is kept."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ring(self) -> None:
        """Wake whoever waits, or the next one who will."""
        self._event.set()

    async def heard(self, clock: Clock, seconds: float | None) -> bool:
        """Wait for a ring, at most *seconds*; return whether there was one."""
        rung = await clock.wait(self._event, seconds)
        if rung:
            self._event = anyio.Event()
        return rung
