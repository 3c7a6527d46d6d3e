"""The key index: which task owns the work of one session, role, objective and context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.ports import SERVER_TIME, Create, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.errors import InvalidInput, NewerDocument
from fireswarm.storage.documents.paths import key_path, task_path
from fireswarm.storage.documents.read import parse_task_snapshot


@dataclass(frozen=True, slots=True)
class Owner:
    """The document of a key, and the task that owns its work; ``task`` is None if there is none.

    ``taken`` is True if the task with the key as its id does other work since a person edited it.
    """

    key: Snapshot
    snapshot: Snapshot
    task: Task | None
    fault: InvalidInput | None = None
    taken: bool = False

    def take_over(self, key_id: str, task: Task) -> Write:
        """Return the write that sets *task* as the owner in the key's document; fails if the document has changed."""
        if self.key.data is None:
            return create_key(key_id, task)
        return Update(key_path(key_id), _fields(task), self.key.update_time)


def create_key(key_id: str, task: Task) -> Create:
    """Return the write that creates the key's document for *task*."""
    return Create(key_path(key_id), _fields(task))


async def read_owner(store: Store, work: Task) -> Owner:
    """Read which task of a session owns the work that *work* describes.

    The id of a submitted task is the key; for a hand-written task, the key's document has the id. A deleted or
    unreadable task owns no work. Raises NewerDocument: whether a task of a newer version does is not known here.
    """
    key_id = work.work_id
    key, submitted = await store.get_many([key_path(key_id), task_path(key_id)])
    named = (key.data or {}).get("task_id")
    snapshot = submitted
    if is_document_id(named) and named != key_id:
        snapshot = await store.get(task_path(named))
    try:
        task = parse_task_snapshot(snapshot)
    except NewerDocument:
        raise
    except InvalidInput as fault:
        return Owner(key, snapshot, None, None if snapshot.data is None else fault)
    # A key may name any task: one written by hand, or one whose objective, context or session was edited since. A task
    # that was given to another role goes on with its work.
    asked, found = ((item.session_hash, item.idempotency_key) for item in (work, task))
    own = task.work_id == key_id or (snapshot.id == key_id and asked == found)
    return Owner(key, snapshot, task if own else None, taken=not own and snapshot.id == key_id)


def _fields(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "session_hash": task.session_hash,
        "assigned_to": task.assigned_to,
        "created_at": SERVER_TIME,
    }


def does_work(owner: Owner, task: Task) -> bool:
    """Return True if another task owns the work of *task*; a canceled one does not."""
    return (
        owner.task is not None and owner.task.task_id != task.task_id and owner.task.status is not TaskStatus.CANCELED
    )
