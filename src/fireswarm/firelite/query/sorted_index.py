"""Sorted in-memory indexes, made at the first query that needs one and kept by every commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sortedcontainers import SortedDict

from fireswarm.firelite.documents.record import Record
from fireswarm.firelite.documents.values import descending
from fireswarm.firelite.query.planner import IndexHome, Scan, Shape
from fireswarm.firelite.query.query import EncodedFields

# A program has a few dozen query shapes; an explorer who sorts by every field must not pay for each one for ever.
SHAPES_PER_HOME_MAX = 64


class OrderedIndex:
    """The documents of a home that have all of a shape's fields, sorted."""

    __slots__ = ("_components", "_entries", "_keys", "shape")

    def __init__(self, shape: Shape, records: Iterable[Record]) -> None:
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
        """Take in a document's new fields, or (None) forget it."""
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
        """(sort key, document name) of every entry between the bounds, in order."""
        entries = self._entries
        for key in entries.irange(scan.low, scan.high, inclusive=(True, False)):
            yield key[scan.skip :], entries[key]

    def count(self, scan: Scan) -> int:
        """Count the entries between the bounds without reading them."""
        return max(0, self._entries.bisect_left(scan.high) - self._entries.bisect_left(scan.low))


class IndexCatalog:
    """The indexes of all homes."""

    def __init__(self) -> None:
        self._homes: dict[IndexHome, dict[Shape, OrderedIndex]] = {}  # the longest unused shape first

    def find(self, home: IndexHome, shape: Shape) -> OrderedIndex | None:
        """The index, if it was made before; asking keeps it from being dropped."""
        shapes = self._homes.get(home)
        if shapes is None or shape not in shapes:
            return None
        index = shapes[shape] = shapes.pop(shape)
        return index

    def build(self, home: IndexHome, shape: Shape, records: Iterable[Record]) -> OrderedIndex:
        """Make the index; the home's longest unused one goes when there are too many."""
        shapes = self._homes.setdefault(home, {})
        index = shapes[shape] = OrderedIndex(shape, records)
        if len(shapes) > SHAPES_PER_HOME_MAX:
            del shapes[next(iter(shapes))]
        return index

    def covering(self, homes: Iterable[IndexHome]) -> list[OrderedIndex]:
        """Every index of these homes: those that a document in them has to be entered in."""
        return [index for home in homes if home in self._homes for index in self._homes[home].values()]

    def drop(self, home: IndexHome) -> None:
        """Forget the indexes of a home that has no documents left."""
        self._homes.pop(home, None)
