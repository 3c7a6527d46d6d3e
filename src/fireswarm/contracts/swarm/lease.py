"""A claimed task with its fencing epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import LeaseLost


@dataclass(slots=True)
class HeldLease:
    """One claim of one task.

    ``epoch`` is the fencing token that every later commit must match. ``version`` is the last known update time of the
    task's document, so the usual commit needs one round trip and no read. ``over`` is True once the lease was settled:
    the document's version then belongs to the next state. ``in_doubt`` is True after a commit of the settlement that
    may have been applied. ``work_id`` is the work that was claimed: a person may edit the task meanwhile.
    """

    task: Task
    owner: str
    epoch: int
    claimed_at: datetime
    expires_at: datetime
    version: Any = field(repr=False)
    over: bool = False
    in_doubt: bool = False
    work_id: str = ""

    def __post_init__(self) -> None:
        """Note the work that was claimed."""
        self.work_id = self.work_id or self.task.work_id

    def lost(self) -> LeaseLost:
        """Return the error for a lease that was already settled."""
        return LeaseLost(
            f"epoch {self.epoch} of task {self.task.task_id} has ended: it was settled; nothing was written"
        )

    @property
    def run_id(self) -> str:
        """Id of the run document of this epoch."""
        return self.task.run_id(self.epoch)
