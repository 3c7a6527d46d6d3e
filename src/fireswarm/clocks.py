"""Clocks. ServerClock tracks the store's time, so that all workers agree on lease expiry."""

from __future__ import annotations

import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel

from fireswarm.contracts.ports import Clock

RESYNC_SECONDS = 60.0
"""Maximum age of a better (smaller) offset estimate, so that a drifting clock is followed."""


class ServerClock:
    """The local clock plus its offset to the server's clock, learned from commit times.

    A commit time is at most the server's current time, so each observation gives a lower bound of the
    offset; the highest recent bound is the tightest.
    """

    def __init__(self) -> None:
        self._offset = timedelta(0)
        self._learnt_at = float("-inf")

    def now(self) -> datetime:
        """Return the best estimate of the server's time, in UTC."""
        return datetime.now(UTC) + self._offset

    def observe(self, server_time: datetime) -> None:
        """Update the offset from a timestamp that the server has just set."""
        bound = server_time - datetime.now(UTC)
        stale = time.monotonic() - self._learnt_at > RESYNC_SECONDS
        if stale or bound > self._offset:
            self._offset = bound
            self._learnt_at = time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait *seconds* of real time."""
        await anyio.sleep(max(0.0, seconds))

    async def wait(self, event: anyio.Event, seconds: float | None) -> bool:
        """Wait for *event*, at most *seconds* (None: without limit); return True if it was set."""
        with anyio.move_on_after(seconds):
            await event.wait()
        return event.is_set()


class VirtualClock:
    """Virtual time that moves only by ``advance``: hours of leases and back-offs pass in milliseconds.

    For tests and simulations. Waiters wake in the order of their due times, and each gets *turns* rounds of the
    event loop before time moves on.
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
        """Do nothing: a virtual clock is the server's clock."""

    async def sleep(self, seconds: float) -> None:
        """Wait until time has advanced by *seconds*."""
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
        """Advance time by *seconds*, waking the waiters that become due."""
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
        """Let every task run as far as it can without time passing."""
        for _ in range(self._turns):
            await anyio.lowlevel.checkpoint()


class Bell:
    """An event that can be rung repeatedly. A ring without a waiter is kept for the next one."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ring(self) -> None:
        """Wake the current waiter, or the next one."""
        self._event.set()

    async def heard(self, clock: Clock, seconds: float | None) -> bool:
        """Wait for a ring, at most *seconds*; return True if there was one."""
        rung = await clock.wait(self._event, seconds)
        if rung:
            self._event = anyio.Event()
        return rung
