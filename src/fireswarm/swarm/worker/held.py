"""The tasks that one worker holds: claimed, running or ending."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field

import anyio

from fireswarm.clocks import Bell
from fireswarm.contracts.swarm.outcome import Outcome
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.worker.turn_limits import TurnLimit

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class HeldWork:
    """One claimed task: its lease, and the scope that cancels its turn when the lease is lost.

    ``limit`` are the limits of its turn while it runs. At one of them, the scope ``turn`` is cancelled, and ``cut`` is
    the outcome.
    """

    lease: HeldLease
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    turn: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    limit: TurnLimit | None = None
    cut: Outcome | None = None
    started: bool = False
    settling: bool = False
    ended_because: str = ""


@dataclass(slots=True)
class HeldTasks:
    """The claimed tasks of a worker. ``added`` rings when a task is claimed, ``freed`` when one is removed.

    Two of them may have one run: a task whose document was reset to an earlier epoch is claimed again.
    """

    works: dict[HeldWork, None] = field(default_factory=dict["HeldWork", None])
    ready: deque[HeldWork] = field(default_factory=deque[HeldWork])
    added: Bell = field(default_factory=Bell)
    freed: Bell = field(default_factory=Bell)

    def __len__(self) -> int:
        return len(self.works)

    def add(self, lease: HeldLease) -> None:
        """Add a claimed task to those waiting to start."""
        work = HeldWork(lease)
        self.works[work] = None
        self.ready.append(work)
        self.added.ring()

    def all(self) -> list[HeldWork]:
        """Return a copy of the list of held tasks."""
        return list(self.works)

    def task_ids(self) -> list[str]:
        """Return the ids of the held tasks."""
        return [work.lease.task.task_id for work in self.works]

    def forget(self, work: HeldWork) -> None:
        """Remove a task that has ended."""
        del self.works[work]
        self.freed.ring()

    def end(self, work: HeldWork, reason: str) -> None:
        """Cancel a task's turn, or drop the task if its turn has not started.

        Does nothing for a task that has ended.
        """
        if work not in self.works:
            return
        work.ended_because = reason
        if work.started:
            work.scope.cancel()
        else:
            _log.warning("task %s: %s", work.lease.task.task_id, reason)
            self.ready.remove(work)
            self.forget(work)
