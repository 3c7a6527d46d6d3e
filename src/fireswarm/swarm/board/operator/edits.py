"""Complete a change by a person who set the status of a task to canceled or done in the Firebase console."""

from __future__ import annotations

from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.signals.spans import report_end
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.operator.actions import end_task
from fireswarm.swarm.board.rules import BoardContext

SUMMARIES = {TaskStatus.CANCELED: "canceled by hand", TaskStatus.DONE: "set to done by hand"}


async def settle_edited(board: BoardContext, snapshot: Snapshot) -> bool:
    """End a task with its hand-written status: one commit updates dependents, run and holder.

    Returns False if the end is settled already. Raises Conflict if the document changed.
    """
    task = parse_task_snapshot(snapshot)
    if not task.open or task.status not in SUMMARIES:
        return False
    reason = task.summary if task.summary.startswith("canceled: ") else SUMMARIES[task.status]
    await end_task(board, task, snapshot.update_time, task.status, reason)
    report_end(task, task.status, board.clock.now())
    return True
