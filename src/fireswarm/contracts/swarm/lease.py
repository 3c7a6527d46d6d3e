"""A claimed task with its fencing epoch, and what its turn does."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import LeaseLost


@dataclass(slots=True)
class Activity:
    """What a turn does, for the limits that end a turn in which nothing happens.

    ``last_at`` is the time of its last event. ``steps`` counts the steps that it has finished; steps of earlier runs do
    not count. ``calls`` are the calls in progress that have limits of their own.
    """

    last_at: datetime
    steps: int = 0
    calls: int = 0

    @contextmanager
    def limited_call(self, now: Callable[[], datetime]) -> Generator[None]:
        """Mark a call that ends by a limit of its own: no other limit ends the turn during it."""
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1
            self.last_at = now()


@dataclass(slots=True)
class HeldLease:
    """One claim of one task.

    ``epoch`` is the fencing token that every later commit must match. ``version`` is the last known update time of the
    task's document, so the usual commit needs one round trip and no read. ``over`` is True once the lease was settled:
    the document's version then belongs to the next state. ``in_doubt`` is True after a commit of the settlement that
    may have been applied. ``work_id`` is the work that was claimed: a person may edit the task meanwhile.
    ``cut_off_at`` is the time at which its limits end a turn of one step. ``heard`` counts the messages to the task
    that its model was told, None for a turn without a model. ``activity`` is what the turn does.
    ``followers`` are called at each renewal with the seconds until the lease expires.
    """

    task: Task
    owner: str
    epoch: int
    claimed_at: datetime
    expires_at: datetime
    version: Any = field(repr=False)
    over: bool = False
    in_doubt: bool = False
    cut_off_at: datetime | None = None
    work_id: str = ""
    heard: int | None = None
    activity: Activity = field(init=False)
    followers: list[Callable[[float], object]] = field(default_factory=list[Callable[[float], object]], repr=False)

    def __post_init__(self) -> None:
        """Note the work that was claimed, and begin without activity."""
        self.activity = Activity(self.claimed_at)
        self.work_id = self.work_id or self.task.work_id

    @property
    def unheard(self) -> bool:
        """True if somebody said something to the task that its model was not told."""
        return self.heard is not None and len(self.task.said) > self.heard

    def note_renewal(self, expires_at: datetime, version: Any, seconds: float) -> None:
        """Note a renewal for *seconds*, and tell the followers."""
        self.expires_at, self.version = expires_at, version
        for follow in self.followers:
            follow(seconds)

    def lost(self) -> LeaseLost:
        """Return the error for a lease that was already settled."""
        return LeaseLost(
            f"epoch {self.epoch} of task {self.task.task_id} has ended: it was settled; nothing was written"
        )

    @property
    def run_id(self) -> str:
        """Id of the run document of this epoch."""
        return self.task.run_id(self.epoch)
