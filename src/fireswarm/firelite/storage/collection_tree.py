"""Which collections lie below which document, counting those that hold nothing but deeper collections."""

from __future__ import annotations

from fireswarm.firelite.documents.paths import last_segment, parent_of, root_of


class CollectionTree:
    """The non-empty collections and everything on the way to them, each counted once a collection below it."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, int]] = {}  # document or root -> collection id -> count
        self._documents: dict[str, dict[str, int]] = {}  # collection -> document id on the way to a deeper one

    def add(self, collection: str) -> None:
        """A collection got its first document."""
        self._count(collection, 1)

    def discard(self, collection: str) -> None:
        """A collection lost its last document."""
        self._count(collection, -1)

    def collection_ids(self, parent: str) -> list[str]:
        """The ids of the collections under a document or root, in order."""
        return sorted(self._collections.get(parent, ()), key=str.encode)

    def on_the_way(self, collection: str) -> list[str]:
        """The ids in a collection, of documents existing or not, that have collections below them."""
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
