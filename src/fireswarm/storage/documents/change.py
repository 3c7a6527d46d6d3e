"""Changes of documents on the condition that they are as they were read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fireswarm.contracts.ports import Delete, Snapshot, Store
from fireswarm.errors import Conflict, StoreUnavailable

ATTEMPTS = 8
"""Maximum attempts of a change while other processes change the same document."""


async def delete_as_read(store: Store, read: Callable[[], Awaitable[Snapshot]]) -> None:
    """Delete the document that *read* returns, in that version; if it changed meanwhile, it is read and checked again.

    Raises what *read* raises for a document that may not be deleted, and StoreUnavailable after repeated conflicts.
    """
    path = ""
    for _ in range(ATTEMPTS):
        snapshot = await read()
        path = snapshot.path
        try:
            await store.commit([Delete(path, snapshot.update_time)])
        except Conflict as conflict:
            if not (conflict.ambiguous and (await store.get(path)).data is None):
                continue
        return
    raise StoreUnavailable(f"{path} keeps changing: it was not deleted, try again")
