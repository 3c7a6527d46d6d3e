"""All documents in memory: the newest versions, recent older ones, collections and indexes.

Old versions remain readable for a while, so that a read-only transaction or a ``read_time`` gets one point in time. The
history is bounded in time and in bytes; times before ``horizon_us`` cannot be read.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from firelite.documents.paths import last_segment, root_of
from firelite.documents.protos import FieldsPb
from firelite.documents.record import Record
from firelite.errors import FailedPrecondition
from firelite.query.planner import IndexHome, Scan, Shape, index_home, plan
from firelite.query.query import EncodedFields, Query, Scope
from firelite.query.slices import SMALL_DOCUMENTS, Steps, at_once
from firelite.query.sorted_index import IndexCatalog, OrderedIndex, build_steps
from firelite.spill import Spill
from firelite.storage.collection_tree import CollectionTree
from firelite.storage.saved_indexes import SavedIndexes

# Production's limit of a read_time, without point-in-time recovery.
HISTORY_SECONDS = 3600.0
# Enough for hundreds of thousands of versions; the contents that exceed it go to the disk.
HISTORY_MAX_BYTES = 128 * 1024 * 1024
HISTORY_MAX_DISK_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """Limits of the old versions that can be read: their age, and their size in memory and on the disk."""

    seconds: float = HISTORY_SECONDS
    memory_bytes: int | None = None  # None: HISTORY_MAX_BYTES
    disk_bytes: int = HISTORY_MAX_DISK_BYTES


class Change(NamedTuple):
    """One document changed by a commit: the version before (None if new) and after (possibly a tombstone)."""

    old: Record | None
    new: Record
    fields: FieldsPb | None  # of the new version; None for a tombstone


class Store:
    """The documents of one data file, in all its databases."""

    def __init__(
        self, horizon_us: int = 0, lineage: int = 0, limits: HistoryLimits | None = None, folder: Path | None = None
    ) -> None:
        """Start without documents; *horizon_us*, the last commit, is the earliest time that can be read.

        Old versions that *limits* does not allow in memory go to the *folder*; without one, they are dropped.
        """
        self.horizon_us = horizon_us  # earlier reads are refused
        self.last_commit_us = horizon_us
        self.lineage = lineage  # see listen.tokens
        self.saved: SavedIndexes | None = None
        self.live = 0
        self.tree = CollectionTree()
        self.indexes = IndexCatalog()
        self._records: dict[str, Record] = {}
        self._collections: dict[str, dict[str, Record]] = {}
        self._groups: dict[tuple[str, str], dict[str, None]] = {}
        self._history: deque[tuple[Record, int]] = deque()  # new version, size of the old one in bytes
        self._history_bytes = 0  # in memory
        self._limits = limits or HistoryLimits()
        self._spill = None if folder is None or not self._limits.disk_bytes else Spill(folder)
        self._unspilled: deque[Record] = deque()  # new versions whose old one is in memory
        self._disk_bytes = 0
        self._pins: list[int] = []  # times being read; the history back to the earliest is preserved

    def get(self, name: str) -> Record | None:
        """Return the current document, or None."""
        record = self._records.get(name)
        return record if record is not None and record.exists else None

    def get_at(self, name: str, read_us: int) -> Record | None:
        """Return the document at a past time, or None. Raises FailedPrecondition if that is too long ago."""
        self.check_readable(read_us)
        record = self._records.get(name)
        while record is not None and record.update_us > read_us:
            record = record.previous
        return record if record is not None and record.exists else None

    def check_readable(self, read_us: int) -> None:
        """Raise FailedPrecondition if the time is before the available history."""
        if read_us < self.horizon_us:
            raise FailedPrecondition("The requested read_time is too old: firelite no longer keeps that version.")

    @contextmanager
    def pin(self, read_us: int) -> Generator[None]:
        """Preserve the history back to this time while the block runs."""
        self._pins.append(read_us)
        try:
            yield
        finally:
            self._pins.remove(read_us)

    def load(self, records: Iterable[Record]) -> None:
        """Add the documents of the data file, on opening."""
        for record in records:
            self._records[record.name] = record
            self._enter(record)

    def apply(self, changes: Iterable[Change], now_us: int) -> None:
        """Apply committed changes and drop history that is too old."""
        for change in changes:
            self._apply(change)
        self._trim(now_us)

    def _apply(self, change: Change) -> None:
        """Apply one change to the documents, the indexes and the history."""
        new = change.new
        new.previous = self._records.get(new.name)
        self._records[new.name] = new
        self.last_commit_us = max(self.last_commit_us, new.update_us)
        if new.exists:
            self._enter(new)
        elif change.old is not None:
            self._leave(new)
        indexes = self.indexes.covering(homes_of(new.collection))
        if indexes:
            fields = None if change.fields is None else EncodedFields(change.fields, new.key)
            for index in indexes:
                index.update(new.name, fields)
        weight = _weight(change.old)
        self._history.append((new, weight))
        self._history_bytes += weight
        if self._spill is not None:
            self._unspilled.append(new)

    def _enter(self, record: Record) -> None:
        members = self._collections.get(record.collection)
        if members is None:
            members = self._collections[record.collection] = {}
            self.tree.add(record.collection)
            group = (root_of(record.collection), last_segment(record.collection))
            self._groups.setdefault(group, {})[record.collection] = None
        self.live += record.name not in members
        members[record.name] = record

    def _leave(self, record: Record) -> None:
        members = self._collections[record.collection]
        del members[record.name]
        self.live -= 1
        if not members:
            del self._collections[record.collection]
            self.tree.discard(record.collection)
            group = (root_of(record.collection), last_segment(record.collection))
            del self._groups[group][record.collection]
            self.indexes.drop(("collection", record.collection))

    def _trim(self, now_us: int) -> None:
        """Move contents of the history to the disk, and drop the history that is too old or too large."""
        limits = self._limits
        memory_bytes = HISTORY_MAX_BYTES if limits.memory_bytes is None else limits.memory_bytes
        while self._history_bytes > memory_bytes and self._unspilled:
            self._move_to_disk(self._unspilled.popleft())
        oldest_us = now_us - int(limits.seconds * 1_000_000)
        history = self._history
        while history and (
            history[0][0].update_us < oldest_us
            or self._history_bytes > memory_bytes
            or self._disk_bytes > limits.disk_bytes
        ):
            if self._pins and history[0][0].update_us > min(self._pins):
                return
            self._drop(*history.popleft())

    def _move_to_disk(self, new: Record) -> None:
        """Move the content of the version before *new* to the disk, if there is space."""
        old = new.previous
        content = None if old is None else old.data
        if self._spill is None or old is None or content is None:
            return
        stored = self._spill.append(content)
        if stored is not None:
            old.move_data(stored)
            self._history_bytes -= len(content)
            self._disk_bytes += len(content)

    def _drop(self, new: Record, weight: int) -> None:
        """Drop the version before *new*."""
        if self._unspilled and self._unspilled[0] is new:
            self._unspilled.popleft()
        old = new.previous
        on_disk = old.moved_bytes if old is not None else 0
        self._history_bytes -= weight - on_disk
        self._disk_bytes -= on_disk
        new.previous = None
        self.horizon_us = max(self.horizon_us, new.update_us)
        if not new.exists and self._records.get(new.name) is new:
            del self._records[new.name]

    def changed_since(self, moment_us: int) -> dict[str, Record]:
        """Return the newest version, tombstones included, of every document changed after the given time."""
        self.check_readable(moment_us)
        changed: dict[str, Record] = {}
        for record, _ in reversed(self._history):
            if record.update_us <= moment_us:
                break
            changed.setdefault(record.name, record)
        return changed

    def touches(self, query: Query, moment_us: int) -> bool:
        """Return True if a document changed since a time that matches the query, or matched it then.

        Offset and limit are ignored. Raises FailedPrecondition if the time is too long ago.
        """
        for name, record in self.changed_since(moment_us).items():
            if query.scope.contains(name):
                before = self.get_at(name, moment_us)
                if any(
                    version is not None and version.exists and query.matches(version.fields(), version.key)
                    for version in (record, before)
                ):
                    return True
        return False

    def last_commit_at(self, moment_us: int) -> int:
        """Return the time of the last commit at a time that can be read."""
        for record, _ in reversed(self._history):
            if record.update_us <= moment_us:
                return record.update_us
        return self.horizon_us

    def everything(self) -> Iterator[Record]:
        """Yield every existing document of every database, in no particular order."""
        for members in self._collections.values():
            yield from members.values()

    def collections_of(self, collection_id: str) -> list[str]:
        """Return the paths of all non-empty collections with this id, in all databases."""
        groups = [paths for (_, group), paths in self._groups.items() if group == collection_id]
        return [path for paths in groups for path in paths]

    def names_in(self, collection: str) -> list[str]:
        """Return the names of a collection's documents."""
        return list(self._collections.get(collection, ()))

    def names_below(self, path: str) -> Iterator[str]:
        """Yield the names of the documents in the collection at the path and in all collections below it."""
        for collection, members in self._collections.items():
            if collection == path or collection.startswith(path + "/"):
                yield from members

    def collection_paths(self) -> dict[str, int]:
        """Return every non-empty collection with its number of documents."""
        return {path: len(members) for path, members in self._collections.items()}

    def run(self, query: Query) -> tuple[list[Record], int]:
        """Return the query's documents in order, and the number skipped by the offset."""
        return self._collect(query, plan(query))

    def run_small(self, query: Query) -> tuple[list[Record], int] | None:
        """Return the same as ``run``, or None if many documents would make it slow."""
        scans = plan(query)
        return self._collect(query, scans) if all(self._is_small(query, scan) for scan in scans) else None

    def is_small(self, query: Query) -> bool:
        """Return True if ``run`` is fast."""
        return all(self._is_small(query, scan) for scan in plan(query))

    def _collect(self, query: Query, scans: list[Scan]) -> tuple[list[Record], int]:
        if query.limit == 0:
            return [], 0
        if len(scans) == 1:
            records = (record for _, record in self._scan(query, scans[0]))
        else:
            records = self._merge(query, scans)
        skipped = sum(1 for _ in islice(records, query.offset)) if query.offset else 0
        return list(islice(records, query.limit) if query.limit is not None else records), skipped

    def _is_small(self, query: Query, scan: Scan) -> bool:
        """Return True if the scan reads few documents, and its index exists or would have few entries."""
        index = self.indexes.find(index_home(query.scope), scan.shape)
        if index is None:
            return self._has_at_most(SMALL_DOCUMENTS, query.scope)
        if len(index) <= SMALL_DOCUMENTS:
            return True
        if query.limit is not None and not scan.residual and not scan.check_scope:
            return query.offset + query.limit <= SMALL_DOCUMENTS or index.count(scan) <= SMALL_DOCUMENTS
        return index.count(scan) <= SMALL_DOCUMENTS

    def _has_at_most(self, number: int, scope: Scope) -> bool:
        """Return True if the scope's index family has few documents."""
        if self.live <= number:
            return True
        return sum(len(self._collections[path]) for path in self._home_collections(scope)) <= number

    def _home_collections(self, scope: Scope) -> list[str]:
        """Return the collections of the scope's index family."""
        if scope.kind == "collection":
            return [scope.path] if scope.path in self._collections else []
        if scope.kind == "group":
            return list(self._groups.get((scope.root, scope.collection_id), ()))
        return [path for path in self._collections if path.startswith(scope.root + "/")]

    def count(self, query: Query) -> int | None:
        """Count the matching documents (offset and limit applied), or return None if an index is not sufficient."""
        scans = plan(query)
        if len(scans) != 1 or scans[0].residual or scans[0].check_scope:
            return None
        matching = max(0, self.index(query.scope, scans[0].shape).count(scans[0]) - query.offset)
        return matching if query.limit is None else min(matching, query.limit)

    def _merge(self, query: Query, scans: list[Scan]) -> Iterator[Record]:
        last = None
        streams = [self._scan(query, scan) for scan in scans]
        for place, record in heapq.merge(*streams, key=lambda found: found[0]):
            # A sort key ends with the name: equal keys are one document, found by several disjuncts.
            if place != last:
                last = place
                yield record

    def _scan(self, query: Query, scan: Scan) -> Iterator[tuple[bytes, Record]]:
        """Yield the sort key and the document of each match of one scan, in order."""
        index = self.index(query.scope, scan.shape)
        for place, name in index.scan(scan):
            if scan.check_scope and not query.scope.contains(name):
                continue
            record = self._records[name]
            if scan.residual:
                fields = EncodedFields(record.fields(), record.key)
                if not all(fields.satisfies(predicate) for predicate in scan.residual):
                    continue
            yield place, record

    def index(self, scope: Scope, shape: Shape) -> OrderedIndex:
        """Return the index, and build it first if it is missing."""
        home = index_home(scope)
        index = self.indexes.find(home, shape)
        if index is None:
            at_once(self.index_steps(scope, shape))
            index = self.indexes.find(home, shape)
        assert index is not None
        return index

    def index_steps(self, scope: Scope, shape: Shape) -> Steps[None]:
        """Build an index unless it exists. Other callers may run steps of the same index in between."""
        home = index_home(scope)
        while self.indexes.find(home, shape) is None:
            self.indexes.build(home, shape, lambda index: self._build_steps(scope, index))
            yield

    def _build_steps(self, scope: Scope, index: OrderedIndex) -> Iterator[None]:
        """Load an index from the data file, or enter all documents of its family."""
        names = list(self._names_of(scope))
        if self.saved is None or len(names) <= SMALL_DOCUMENTS:
            return build_steps(index, names, self.get)
        return self.saved.load_steps(index_home(scope), index, names, self.get)

    def save_indexes(self) -> None:
        """Save the large indexes in the data file. Raises sqlite3.Error."""
        if self.saved is not None:
            self.saved.save_all(self.indexes, lambda name: self._records[name].row, self.last_commit_us)

    def all_index_steps(self, query: Query) -> Steps[None]:
        """Build the missing indexes of a query."""
        for scan in plan(query):
            yield from self.index_steps(query.scope, scan.shape)

    def _names_of(self, scope: Scope) -> Iterator[str]:
        """Yield the documents of the scope's index family, without collections that are created meanwhile."""
        for path in self._home_collections(scope):
            yield from self.names_in(path)


@lru_cache(maxsize=1024)
def homes_of(collection: str) -> tuple[IndexHome, ...]:
    """Return the index families of a collection's documents."""
    root = root_of(collection)
    return ("collection", collection), ("group", root, last_segment(collection)), ("all", root)


def _weight(old: Record | None) -> int:
    # The history keeps the replaced version alive; 200 bytes account for the surrounding objects.
    return 200 + (len(old.data) if old is not None and old.data is not None else 0)
