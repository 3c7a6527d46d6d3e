"""A held lease: what a worker has in its hands while it works on a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fireswarm.contracts.task import Task


@dataclass(slots=True)
class HeldLease:
    """One claim of one task.

    ``epoch`` is the fencing token: every later commit has to match it. ``version`` is the task
    document's last known update time, which makes the usual commit one round trip without a read.
    """

    task: Task
    owner: str
    epoch: int
    expires_at: datetime
    version: Any = field(repr=False)

    @property
    def run_id(self) -> str:
        """The run document of this epoch."""
        return self.task.run_id(self.epoch)
