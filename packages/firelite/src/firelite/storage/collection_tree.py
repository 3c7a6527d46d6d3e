"""The tree of collections below documents, including those that have only deeper collections."""

from __future__ import annotations

from firelite.documents.paths import last_segment, parent_of, root_of


class CollectionTree:
    """The non-empty collections and all their ancestors, each with the number of collections below it."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, int]] = {}  # document or root -> collection id -> count
        self._documents: dict[str, dict[str, int]] = {}  # collection -> id of an ancestor of a deeper one -> count

    def add(self, collection: str) -> None:
        """Add a collection that got its first document."""
        self._count(collection, 1)

    def discard(self, collection: str) -> None:
        """Remove a collection that lost its last document."""
        self._count(collection, -1)

    def collection_ids(self, parent: str) -> list[str]:
        """Return the ids of the collections under a document or root, in order."""
        return sorted(self._collections.get(parent, ()), key=str.encode)

    def on_the_way(self, collection: str) -> list[str]:
        """Return the ids in a collection, of existing and missing documents, that have collections below them."""
        return list(self._documents.get(collection, ()))

    def _count(self, collection: str, step: int) -> None:
        root = root_of(collection)
        while True:
            document = parent_of(collection)
            _bump(self._collections, document, last_segment(collection), step)
            if document == root:
                return
            collection = parent_of(document)
            _bump(self._documents, collection, last_segment(document), step)


def _bump(table: dict[str, dict[str, int]], outer: str, inner: str, step: int) -> None:
    counts = table.setdefault(outer, {})
    counts[inner] = counts.get(inner, 0) + step
    if not counts[inner]:
        del counts[inner]
        if not counts:
            del table[outer]
