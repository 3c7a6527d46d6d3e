"""Listings of the past: collections and missing documents at a past time. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from firelite.storage.versions import Store


def collection_ids_at(store: Store, parent: str, read_us: int) -> list[str]:
    """Return the ids of the collections under a document or root at a past time, in order."""
    return _children_at(store, parent, store.tree.collection_ids(parent), read_us)


def on_the_way_at(store: Store, collection: str, read_us: int) -> list[str]:
    """Return the ids in a collection, of existing and missing documents, that had collections below them."""
    return _children_at(store, collection, store.tree.on_the_way(collection), read_us)


def _children_at(store: Store, parent: str, current: Iterable[str], read_us: int) -> list[str]:
    """Return the path segments after *parent* that led to a deeper document, in order.

    Raises FailedPrecondition if the time is too long ago.
    """
    changed = store.changed_since(read_us)
    touched: dict[str, bool] = {}  # segment -> a changed document below it existed
    for name in changed:
        child = _child(parent, name)
        if child is not None and not touched.get(child, False):
            touched[child] = store.get_at(name, read_us) is not None
    children = {child for child in current if child not in touched}
    for child, existed in touched.items():
        if existed or any(name not in changed for name in store.names_below(f"{parent}/{child}")):
            children.add(child)
    return sorted(children, key=str.encode)


def _child(parent: str, name: str) -> str | None:
    """Return the segment after the parent, or None if the document is not below that segment."""
    if not name.startswith(parent + "/"):
        return None
    child, separator, _ = name[len(parent) + 1 :].partition("/")
    return child if separator else None
