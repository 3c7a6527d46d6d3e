"""Sorted in-memory indexes, built by the first query that needs one and updated by every commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sortedcontainers import SortedDict

from fireswarm.firelite.documents.record import Record
from fireswarm.firelite.documents.values import descending
from fireswarm.firelite.query.planner import IndexHome, Scan, Shape
from fireswarm.firelite.query.query import EncodedFields

# A program has a few dozen query shapes; one that sorts by every field must not keep an index for each forever.
SHAPES_PER_HOME_MAX = 64


class OrderedIndex:
    """The sorted documents of an index family that have all fields of a shape."""

    __slots__ = ("_components", "_entries", "_keys", "shape")

    def __init__(self, shape: Shape, records: Iterable[Record]) -> None:
        """Build the index of *records*."""
        self.shape = shape
        self._components = [
            *((path, False) for path in shape.equal),
            *((order.path, order.descending) for order in shape.orders),
        ]
        self._keys: dict[str, tuple[bytes, ...]] = {}
        self._entries: Any = SortedDict()  # sort key -> document name; sortedcontainers' types are not generic
        entries: dict[bytes, str] = {}
        for record in records:
            keys = self._keys_of(EncodedFields(record.fields(), record.key))
            if keys:
                self._keys[record.name] = keys
                entries.update(dict.fromkeys(keys, record.name))
        self._entries.update(entries)

    def _keys_of(self, fields: EncodedFields) -> tuple[bytes, ...]:
        """Return the document's keys: one, or one per array element; none if a field is missing."""
        parts: list[bytes] = []
        for path, turn in self._components:
            encoded = fields[path]
            if encoded is None:
                return ()
            parts.append(descending(encoded) if turn else encoded)
        key = b"".join(parts)
        if self.shape.contains is None:
            return (key,)
        return tuple(element + key for element in fields.elements(self.shape.contains))

    def update(self, name: str, fields: EncodedFields | None) -> None:
        """Enter a document's new fields; None removes it."""
        new = () if fields is None else self._keys_of(fields)
        old = self._keys.get(name, ())
        if new == old:
            return
        for key in old:
            del self._entries[key]
        for key in new:
            self._entries[key] = name
        if new:
            self._keys[name] = new
        else:
            del self._keys[name]

    def scan(self, scan: Scan) -> Iterator[tuple[bytes, str]]:
        """Yield (sort key, document name) of every entry between the bounds, in order."""
        entries = self._entries
        for key in entries.irange(scan.low, scan.high, inclusive=(True, False)):
            yield key[scan.skip :], entries[key]

    def count(self, scan: Scan) -> int:
        """Count the entries between the bounds without reading them."""
        return max(0, self._entries.bisect_left(scan.high) - self._entries.bisect_left(scan.low))


class IndexCatalog:
    """The indexes of all index families."""

    def __init__(self) -> None:
        self._homes: dict[IndexHome, dict[Shape, OrderedIndex]] = {}  # least recently used shape first

    def find(self, home: IndexHome, shape: Shape) -> OrderedIndex | None:
        """Return an existing index, or None. Marks it as recently used."""
        shapes = self._homes.get(home)
        if shapes is None or shape not in shapes:
            return None
        index = shapes[shape] = shapes.pop(shape)
        return index

    def build(self, home: IndexHome, shape: Shape, records: Iterable[Record]) -> OrderedIndex:
        """Build an index, and drop the family's least recently used one if there are too many."""
        shapes = self._homes.setdefault(home, {})
        index = shapes[shape] = OrderedIndex(shape, records)
        if len(shapes) > SHAPES_PER_HOME_MAX:
            del shapes[next(iter(shapes))]
        return index

    def covering(self, homes: Iterable[IndexHome]) -> list[OrderedIndex]:
        """Return all indexes of these families: those that must contain a document in them."""
        return [index for home in homes if home in self._homes for index in self._homes[home].values()]

    def drop(self, home: IndexHome) -> None:
        """Drop the indexes of a family without documents."""
        self._homes.pop(home, None)
