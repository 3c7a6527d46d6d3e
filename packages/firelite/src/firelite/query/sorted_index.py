"""Sorted in-memory indexes, built by the first query that needs one and updated by every commit.

An index is built in steps. Commits update it from the first step on, so they may run between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from sortedcontainers import SortedDict

from firelite.documents.record import Record
from firelite.documents.values import descending
from firelite.query.planner import IndexHome, Scan, Shape
from firelite.query.query import EncodedFields
from firelite.query.slices import STEP_DOCUMENTS

# A program has a few dozen query shapes; one that sorts by every field must not accumulate indexes.
SHAPES_PER_HOME_MAX = 64


class OrderedIndex:
    """The sorted documents of an index family that have all fields of a shape."""

    __slots__ = ("_components", "_entries", "_keys", "changes", "shape")

    def __init__(self, shape: Shape) -> None:
        """Start without documents."""
        self.shape = shape
        self.changes = 0  # since the index was loaded from the data file
        self._components = [
            *((path, False) for path in shape.equal),
            *((order.path, order.descending) for order in shape.orders),
        ]
        # A document's single key, or its keys; a tuple for every document would cause full garbage collections.
        self._keys: dict[str, bytes | tuple[bytes, ...]] = {}
        self._entries: Any = SortedDict()  # sort key -> document name; sortedcontainers' types are not generic

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
        """Enter a document's new fields; None removes the document."""
        new = () if fields is None else self._keys_of(fields)
        stored = self._keys.get(name, ())
        old = (stored,) if isinstance(stored, bytes) else stored
        if new == old:
            return
        self.changes += 1
        for key in old:
            del self._entries[key]
        for key in new:
            self._entries[key] = name
        if new:
            self._keys[name] = new[0] if len(new) == 1 else new
        else:
            del self._keys[name]

    def restore(self, key: bytes, name: str) -> None:
        """Enter a key that was saved for an unchanged document."""
        known = self._keys.get(name)
        if known is None:
            self._keys[name] = key
        else:
            self._keys[name] = (known, key) if isinstance(known, bytes) else (*known, key)
        self._entries[key] = name

    def clear(self) -> None:
        """Remove all entries."""
        self._keys.clear()
        self._entries.clear()

    def items(self) -> Iterator[tuple[bytes, str]]:
        """Yield every key with its document's name, in order."""
        yield from self._entries.items()

    def scan(self, scan: Scan) -> Iterator[tuple[bytes, str]]:
        """Yield (sort key, document name) of every entry between the bounds, in order."""
        entries = self._entries
        for key in entries.irange(scan.low, scan.high, inclusive=(True, False)):
            yield key[scan.skip :], entries[key]

    def following(self, scan: Scan, after: bytes | None, count: int) -> list[tuple[bytes, str]]:
        """Return the first keys between the bounds, or the first ones after a key, with their document names."""
        entries = self._entries
        low, inclusive = (scan.low, True) if after is None else (after, False)
        if low >= scan.high:
            return []
        keys = entries.irange(low, scan.high, inclusive=(inclusive, False))
        return [(key, entries[key]) for key in islice(keys, count)]

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def count(self, scan: Scan) -> int:
        """Count the entries between the bounds without reading them."""
        return max(0, self._entries.bisect_left(scan.high) - self._entries.bisect_left(scan.low))


class IndexBuild:
    """An index under construction: each step of *steps* enters a few documents."""

    __slots__ = ("_steps", "index")

    def __init__(self, index: OrderedIndex, steps: Iterator[None]) -> None:
        self.index = index
        self._steps = steps

    def step(self) -> bool:
        """Enter a few documents. Returns True if these were the last."""
        return next(self._steps, self) is self


def build_steps(index: OrderedIndex, names: Iterable[str], current: Callable[[str], Record | None]) -> Iterator[None]:
    """Enter documents into an index; ``current`` returns the newest version of one."""
    names = iter(names)
    while part := list(islice(names, STEP_DOCUMENTS)):
        for name in part:
            record = current(name)
            if record is not None:
                index.update(name, EncodedFields(record.fields(), record.key))
        yield


class IndexCatalog:
    """The indexes of all index families."""

    def __init__(self) -> None:
        self._homes: dict[IndexHome, dict[Shape, OrderedIndex]] = {}  # least recently used shape first
        self._builds: dict[IndexHome, dict[Shape, IndexBuild]] = {}

    def find(self, home: IndexHome, shape: Shape) -> OrderedIndex | None:
        """Return an existing index, or None. Marks it as recently used."""
        shapes = self._homes.get(home)
        if shapes is None or shape not in shapes:
            return None
        index = shapes[shape] = shapes.pop(shape)
        return index

    def build(self, home: IndexHome, shape: Shape, begin: Callable[[OrderedIndex], Iterator[None]]) -> None:
        """Do one step of building an index; the last step makes it available.

        ``begin`` is called by the first step only, and returns the steps.
        """
        builds = self._builds.setdefault(home, {})
        build = builds.get(shape)
        if build is None:
            index = OrderedIndex(shape)
            build = builds[shape] = IndexBuild(index, begin(index))
        if build.step():
            del builds[shape]
            if not builds:
                del self._builds[home]
            self._add(home, build.index)

    def _add(self, home: IndexHome, index: OrderedIndex) -> None:
        """Enter an index, and drop the family's least recently used one if there are too many."""
        shapes = self._homes.setdefault(home, {})
        shapes[index.shape] = index
        if len(shapes) > SHAPES_PER_HOME_MAX:
            del shapes[next(iter(shapes))]

    def covering(self, homes: Iterable[IndexHome]) -> list[OrderedIndex]:
        """Return all indexes of these families, which must contain every document of the family."""
        indexes = [index for home in homes if home in self._homes for index in self._homes[home].values()]
        if self._builds:
            indexes += [build.index for home in homes for build in self._builds.get(home, {}).values()]
        return indexes

    def everything(self) -> Iterator[tuple[IndexHome, OrderedIndex]]:
        """Yield all indexes, in each family the most recently used first."""
        for home, shapes in self._homes.items():
            for index in reversed(shapes.values()):
                yield home, index

    def drop(self, home: IndexHome) -> None:
        """Drop the indexes of a family without documents."""
        self._homes.pop(home, None)
        self._builds.pop(home, None)
