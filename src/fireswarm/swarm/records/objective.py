"""The tasks of an objective, in order, and their changes until one of them is over."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import NotFound
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.board.graph import is_over, sort_objective


async def until_over(batches: AsyncIterator[Sequence[Snapshot]], task_id: str) -> AsyncGenerator[list[Task]]:
    """Yield the tasks of each batch until the task is over. Raises NotFound if its document is gone."""
    async for snapshots in batches:
        if all(snapshot.id != task_id for snapshot in snapshots):
            raise NotFound(f"task {task_id} is gone: it was deleted, or the store was wiped or restored")
        tasks = parse_objective(snapshots)
        yield tasks
        if is_over(tasks, task_id):
            return


def parse_objective(snapshots: Sequence[Snapshot]) -> list[Task]:
    """Return the readable tasks: parents before children, then by dependencies."""
    return sort_objective(parse_readable(snapshots, parse_task_snapshot))
