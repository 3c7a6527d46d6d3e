"""Clocks: the wall clock corrected to the server's, so that leases are judged by one time."""

from __future__ import annotations

import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel

from fireswarm.contracts.ports import Clock

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


class VirtualClock:
    """Time that stands still until ``advance``: hours of leases and back-offs pass in milliseconds.

    For tests and simulations. Whoever waits through this clock is woken in the order of due times, and
    gets *turns* rounds of the event loop to react before time moves on.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC), *, turns: int = 60) -> None:
        self._now = start
        self._turns = turns
        self._timers: list[tuple[datetime, int, anyio.CancelScope]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        """Return the virtual time, in UTC."""
        return self._now

    def nanoseconds(self) -> int:
        """Return the virtual time in nanoseconds since 1970: the clock of an embedded store."""
        return int(self._now.timestamp() * 1_000_000) * 1_000

    def observe(self, server_time: datetime) -> None:
        """A virtual clock is the server's clock: there is nothing to learn."""

    async def sleep(self, seconds: float) -> None:
        """Wait until time was advanced by *seconds*."""
        await self.wait(anyio.Event(), seconds)

    async def wait(self, event: anyio.Event, seconds: float | None) -> bool:
        """Wait for *event*, at most *seconds* of virtual time."""
        with anyio.CancelScope() as scope:
            if seconds is not None:
                due = self._now + timedelta(seconds=max(0.0, seconds))
                heapq.heappush(self._timers, (due, next(self._order), scope))
            await event.wait()
        return event.is_set()

    async def advance(self, seconds: float) -> None:
        """Let *seconds* pass, waking whoever is due on the way."""
        target = self._now + timedelta(seconds=seconds)
        await self.settle()
        while self._timers and self._timers[0][0] <= target:
            due, _, scope = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            scope.cancel()
            await self.settle()
        self._now = target
        await self.settle()

    async def settle(self) -> None:
        """Give every task a chance to run as far as it can without time passing."""
        for _ in range(self._turns):
            await anyio.lowlevel.checkpoint()


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
