"""Find a document by its id or the beginning of it."""

from __future__ import annotations

from fireswarm.contracts.ports import Snapshot, Store
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.storage.documents import queries

MAX_LISTED = 5
"""Maximum number of ids that the error about an ambiguous beginning lists."""


async def find_by_id(store: Store, collection: str, beginnings: tuple[str, ...], unknown: str) -> Snapshot:
    """Return the one document whose id is or begins with one of *beginnings*; the last one is what a person wrote.

    Raises NotFound with the text *unknown*, and InvalidInput with the ids if there are several.
    """
    given = beginnings[-1]
    found: dict[str, Snapshot] = {}
    for beginning in beginnings:
        exact = await store.get(f"{collection}/{beginning}")
        if exact.data is not None:
            return exact
        after = await store.query(queries.by_id(collection, MAX_LISTED + 1, beginning))
        found |= {snapshot.id: snapshot for snapshot in after if snapshot.id.startswith(beginning)}
    if not found:
        raise NotFound(unknown)
    if len(found) > 1:
        names = ", ".join(sorted(found)[:MAX_LISTED]) + (", ..." if len(found) > MAX_LISTED else "")
        raise InvalidInput(f"more than one id begins with {given}: {names}. Give more characters")
    return next(iter(found.values()))
