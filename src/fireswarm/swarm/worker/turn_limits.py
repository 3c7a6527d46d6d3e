"""End the turns in which nothing happens, and those whose deadline has passed. A turn that makes progress has no limit.

One duty watches all turns of a worker, since a task group per turn would cost more than a short turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fireswarm.clocks import Bell
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.swarm.outcome import Failed, Outcome, Retry
from fireswarm.contracts.swarm.role import RoleLimits
from fireswarm.contracts.swarm.task import NO_DEADLINE, StatusReason
from fireswarm.swarm.board import HeldLease

LONGEST_LOOK_SECONDS = 3600.0
"""Longest time between two looks; a deadline may be in the year 9999."""


@dataclass(frozen=True, slots=True)
class TurnLimit:
    """The limits of one turn: the deadline of its task, and ``idle_seconds`` without an event; ``whose`` names it."""

    lease: HeldLease
    idle_seconds: float
    whose: str

    @classmethod
    def begin(cls, lease: HeldLease, limits: RoleLimits, now: datetime) -> TurnLimit:
        """Return the limits of a turn that begins *now*, and note when they end a turn of one step."""
        task = lease.task
        seconds, whose = limits.idle_seconds, f"the limit of role {task.assigned_to}"
        wanted = task.constraints.timeout_seconds
        if wanted is not None and wanted <= seconds:
            seconds, whose = wanted, "the task's timeout_seconds"
        lease.activity.last_at = now
        limit = cls(lease, seconds, whose)
        lease.cut_off_at = limit.ends_at
        return limit

    @property
    def ends_at(self) -> datetime:
        """Time at which the turn ends if nothing happens until then."""
        return min(self.lease.task.deadline, _later(self.lease.activity.last_at, self.idle_seconds))

    def check(self, now: datetime, stood_still_at: datetime | None) -> Outcome | None:
        """Return the outcome of a turn that has to end, or None. While the process stands still, nothing can happen."""
        activity = self.lease.activity
        if self.lease.task.deadline <= now:
            return Failed("the deadline passed during the turn", StatusReason.DEADLINE_EXCEEDED)
        if activity.calls or (stood_still_at is not None and stood_still_at > activity.last_at):
            activity.last_at = now
        if self.ends_at > now:
            return None
        return Retry(f"nothing happened in the turn for {self.idle_seconds:g} s, {self.whose}")


def _later(time: datetime, seconds: float) -> datetime:
    """Return *time* plus *seconds*; at most the year 9999."""
    return NO_DEADLINE if seconds > (NO_DEADLINE - time).total_seconds() else time + timedelta(seconds=seconds)


@dataclass(slots=True)
class Look:
    """The next look at the turns. ``sooner`` rings for a turn that ends before it."""

    at: datetime | None = None
    sooner: Bell = field(default_factory=Bell)

    def begin(self, lease: HeldLease, limits: RoleLimits, clock: Clock) -> TurnLimit:
        """Return the limits of a turn that begins now, and look at it in time."""
        limit = TurnLimit.begin(lease, limits, clock.now())
        self.need(limit.ends_at)
        return limit

    def need(self, at: datetime) -> None:
        """Look at *at*, or sooner."""
        if self.at is None or at < self.at:
            self.at = at
            self.sooner.ring()

    async def wait(self, clock: Clock) -> None:
        """Wait until the next look is due. Without a turn, wait for one."""
        while (due := self.at) is None or due > clock.now():
            left = None if due is None else min(LONGEST_LOOK_SECONDS, (due - clock.now()).total_seconds())
            await self.sooner.heard(clock, left)
        self.at = None
