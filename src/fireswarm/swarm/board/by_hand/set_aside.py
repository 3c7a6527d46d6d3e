"""Set aside an unusable task document: block it in place, with the field and the fix in its summary."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from fireswarm.contracts.ports import Snapshot
from fireswarm.errors import Conflict, FireswarmError, StoreError, StoreRejected
from fireswarm.swarm.board.dependents import set_aside
from fireswarm.swarm.board.rules import BoardContext

_log = logging.getLogger(__name__)


async def work_on_document[T](board: BoardContext, snapshot: Snapshot, work: Callable[[], Awaitable[T]]) -> T | None:
    """Work on one document; if its content causes an error, set it aside, so that it does not stop other tasks.

    Returns None after a conflict and for a document that was set aside. Raises a StoreError that is not about the
    document: the store is unreachable or full, or lacks an index.
    """
    try:
        return await work()
    except Exception as error:  # a document may have any content; one that causes an unexpected error is set aside too
        await handle_error(board, snapshot, error)
    return None


async def handle_error(board: BoardContext, snapshot: Snapshot, error: Exception) -> None:
    """Set aside the document whose handling failed; does nothing after a conflict.

    Raises a StoreError about the store.
    """
    if isinstance(error, Conflict):
        return
    if isinstance(error, StoreError) and not isinstance(error, StoreRejected):
        raise error
    if not isinstance(error, FireswarmError):
        _log.error("%s could not be handled", snapshot.path, exc_info=error)
    await set_aside(board, snapshot, error)
