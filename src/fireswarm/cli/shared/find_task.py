"""Find a task by a prefix of its id."""

from __future__ import annotations

from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.swarm import Swarm


async def find_task(swarm: Swarm, prefix: str) -> Task:
    """Return the one task whose id begins with *prefix*. Raises NotFound or InvalidInput."""
    if not is_document_id(prefix):
        raise InvalidInput("give a task id, or the beginning of one: `swarm tasks` lists them")
    exact = await swarm.store.get(task_path(prefix))
    snapshots = [exact] if exact.data is not None else await swarm.store.query(queries.id_prefix(prefix))
    if not snapshots:
        raise NotFound(f"there is no task {prefix}: `swarm tasks` lists the tasks")
    if len(snapshots) > 1 and snapshots[0].id != prefix:
        raise InvalidInput(f"more than one task id begins with {prefix}: give more characters")
    return parse_task_snapshot(snapshots[0])
