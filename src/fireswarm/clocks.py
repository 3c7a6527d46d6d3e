"""Clocks. ServerClock tracks the store's time, so that all workers agree on lease expiry."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel

from fireswarm.contracts.ports import Clock

RESYNC_SECONDS = 60.0
"""Length of the windows whose highest bounds count, this one's and the last one's: a drifting clock is followed."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_seconds() -> float:
    """Seconds of a clock that cannot be set; on Linux it also counts the time that the machine was suspended."""
    return time.clock_gettime(_STEADY)


class ServerClock:
    """The server's time, estimated from a steady clock and the read and commit times that the server returns.

    Such a time is never later than the server's current time, so each observation gives a lower bound of the offset;
    the highest recent bound is used. A response that waited while this process stood still gives a bound that is too
    low, and never replaces the bounds before it. Before the first observation, the local wall clock is used. After it,
    setting the wall clock changes nothing.
    """

    def __init__(self, steady: Callable[[], float] = steady_seconds) -> None:
        self._steady = steady
        self._server_at_zero: datetime | None = None
        self._highest = self._highest_before = datetime.min.replace(tzinfo=UTC)
        self._window_began = float("-inf")

    def now(self) -> datetime:
        """Return the best estimate of the server's time, in UTC."""
        if self._server_at_zero is None:
            return datetime.now(UTC)
        return self._server_at_zero + timedelta(seconds=self._steady())

    def observe(self, server_time: datetime) -> None:
        """Update the estimate from a timestamp that the server has just set."""
        seconds = self._steady()
        bound = server_time - timedelta(seconds=seconds)
        if seconds - self._window_began > RESYNC_SECONDS:
            self._highest_before, self._highest, self._window_began = self._highest, bound, seconds
        self._highest = max(self._highest, bound)
        self._server_at_zero = max(self._highest, self._highest_before)

    async def sleep(self, seconds: float) -> None:
        """Wait *seconds* of real time."""
        await anyio.sleep(max(0.0, seconds))

    async def wait(self, event: anyio.Event, seconds: float | None) -> bool:
        """Wait for *event*, at most *seconds* (None: no limit); return True if it was set."""
        with anyio.move_on_after(seconds):
            await event.wait()
        return event.is_set()


class VirtualClock:
    """Virtual time that moves only by ``advance``: hours of leases and back-offs pass in milliseconds.

    For tests and simulations. Waiters wake in the order of their due times, and each gets *turns* rounds of the event
    loop before time moves on.
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

    def stand_still(self, seconds: float) -> None:
        """Advance time by *seconds* while nothing runs, as on a suspended machine: timers become due afterwards."""
        self._now += timedelta(seconds=seconds)

    async def settle(self) -> None:
        """Let every task run as far as it can without time passing."""
        for _ in range(self._turns):
            await anyio.lowlevel.checkpoint()


class Bell:
    """An event that can be rung repeatedly. A ring without a waiter is saved for the next waiter."""

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
