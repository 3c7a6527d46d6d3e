"""Set aside a task document that cannot be worked on: blocked in place, with the field and the fix in its summary."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fireswarm.contracts.limits import MAX_ERROR_CHARS, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Snapshot, Store, Update
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import Conflict, FireswarmError, StoreError, StoreRejected
from fireswarm.swarm.board.rules import SetAside

_log = logging.getLogger(__name__)


async def work_on_document[T](
    store: Store, aside: SetAside, snapshot: Snapshot, work: Callable[[], Awaitable[T]]
) -> T | None:
    """Work on one document; an error that its content causes sets it aside, so that it stops no other.

    Returns None after a conflict and for a document that was set aside. Raises a StoreError that is not about the
    document: the store could not be reached, is full, or lacks an index.
    """
    try:
        return await work()
    except Exception as error:  # a document may hold anything; one that breaks the code is set aside like any other
        await handle_error(store, aside, snapshot, error)
    return None


async def handle_error(store: Store, aside: SetAside, snapshot: Snapshot, error: Exception) -> None:
    """Set the document aside whose handling failed; nothing after a conflict. Raises a StoreError about the store."""
    if isinstance(error, Conflict):
        return
    if isinstance(error, StoreError) and not isinstance(error, StoreRejected):
        raise error
    if not isinstance(error, FireswarmError):
        _log.error("%s could not be handled", snapshot.path, exc_info=error)
    await set_aside(store, aside, snapshot, error)


async def set_aside(store: Store, aside: SetAside, snapshot: Snapshot, error: Exception) -> bool:
    """Block the document with *error* as the reason. Returns False if it changed, or is set aside already.

    Without a lease and without ``sweep_at``, neither a claim nor a sweep reads the document again.
    """
    if snapshot.data is None or is_set_aside(snapshot.data):
        return False
    for write in (set_aside_write(snapshot, error), _shortest_write(snapshot)):
        try:
            await store.commit([write])
        except Conflict:
            return False
        except StoreRejected as refused:  # a document near 1 MiB has no room for the reason
            _log.warning("%s could not be set aside: %s", snapshot.path, refused)
        else:
            _log.warning("%s was set aside: %s", snapshot.path, error)
            aside.add(snapshot.path, error)
            return True
    return False


def is_set_aside(data: Mapping[str, Any]) -> bool:
    """Return True if a task document is dead-lettered and no sweep will look at it."""
    return (
        data.get("status") == TaskStatus.BLOCKED.value
        and data.get("status_reason") == StatusReason.DEAD_LETTER.value
        and data.get("lease") is None
        and "sweep_at" not in data
    )


def set_aside_write(snapshot: Snapshot, error: Exception) -> Update:
    """Return the write that sets the document aside, if it is unchanged."""
    text = str(error) or type(error).__name__
    fields: dict[str, Any] = {
        **_STATE,
        "summary": truncate(f"set aside: {text}. Correct it, then set status to queued.", MAX_STORED_SUMMARY_CHARS),
        "error": truncate(text, MAX_ERROR_CHARS),
        "updated_at": SERVER_TIME,
    }
    return Update(snapshot.path, fields, snapshot.update_time)


def _shortest_write(snapshot: Snapshot) -> Update:
    return Update(snapshot.path, {**_STATE, "summary": "too large", "error": DELETE_FIELD}, snapshot.update_time)


_STATE: dict[str, Any] = {
    "status": TaskStatus.BLOCKED.value,
    "status_reason": StatusReason.DEAD_LETTER.value,
    "lease": None,
    "sweep_at": DELETE_FIELD,
}
