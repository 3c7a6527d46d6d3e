"""Run a query on a snapshot in steps, between which commits may change the store.

The newest version of a document is also its version in the snapshot unless it was committed later. The scan of the
current indexes therefore skips later versions; documents changed since then, listed in the history, are evaluated in
their old version. A document may be found by both with the same sort key.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from firelite.documents.record import Record
from firelite.query.planner import Scan, plan
from firelite.query.query import EncodedFields, Query
from firelite.query.slices import STEP_DOCUMENTS, Steps
from firelite.storage.versions import Store


class Matches(NamedTuple):
    """Documents and their sort keys, in order.

    Two lists, because a tuple for each of many documents would cause full garbage collections, which take longer than
    all steps together.
    """

    places: list[bytes]
    records: list[Record]

    def pairs(self) -> Iterator[tuple[bytes, Record]]:
        """Yield sort keys with their documents."""
        return zip(self.places, self.records, strict=True)


def snapshot_steps(store: Store, query: Query, read_us: int) -> Steps[tuple[list[Record], int]]:
    """Return the query's documents at a time, in order, and the number skipped by the offset.

    Raises FailedPrecondition if the time is too long ago. The history back to that time is preserved until the last
    step.
    """
    store.check_readable(read_us)
    if query.limit == 0:
        return [], 0
    with store.pin(read_us):
        streams: list[Matches] = []
        for scan in plan(query):
            streams.append((yield from _scan_steps(store, query, scan, read_us)))
        streams.append((yield from _changed_steps(store, query, read_us)))
        wanted = None if query.limit is None else query.offset + query.limit
        records = yield from _merge_steps(streams, wanted)
    skipped = min(query.offset, len(records))
    return records[skipped:] if skipped else records, skipped


def _scan_steps(store: Store, query: Query, scan: Scan, read_us: int) -> Steps[Matches]:
    """Return the matches among the documents that were not changed later, in order: enough for offset and limit."""
    yield from store.index_steps(query.scope, scan.shape)
    index = store.index(query.scope, scan.shape)
    wanted = None if query.limit is None else query.offset + query.limit
    matches = Matches([], [])
    after: bytes | None = None
    while wanted is None or len(matches.places) < wanted:
        entries = index.following(scan, after, STEP_DOCUMENTS)
        if not entries:
            break
        after = entries[-1][0]
        _add_matches(matches, store, query, scan, entries, read_us)
        yield
    return matches


def _add_matches(
    matches: Matches, store: Store, query: Query, scan: Scan, entries: Iterable[tuple[bytes, str]], read_us: int
) -> None:
    for key, name in entries:
        record = store.get(name)
        if record is None or record.update_us > read_us:
            continue
        if scan.check_scope and not query.scope.contains(name):
            continue
        if scan.residual:
            fields = EncodedFields(record.fields(), record.key)
            if not all(fields.satisfies(predicate) for predicate in scan.residual):
                continue
        matches.places.append(key[scan.skip :])
        matches.records.append(record)


def _changed_steps(store: Store, query: Query, read_us: int) -> Steps[Matches]:
    """Return the matches among the documents changed later, in their old version, in order."""
    pairs: list[tuple[bytes, Record]] = []
    names = (name for name in store.changed_since(read_us) if query.scope.contains(name))
    while chunk := list(islice(names, STEP_DOCUMENTS)):
        for name in chunk:
            record = store.get_at(name, read_us)
            place = None if record is None else query.sort_key(record.fields(), record.key)
            if record is not None and place is not None:
                pairs.append((place, record))
        yield
    pairs.sort(key=_place)
    return Matches([place for place, _ in pairs], [record for _, record in pairs])


def _merge_steps(streams: list[Matches], wanted: int | None) -> Steps[list[Record]]:
    """Return the first documents of sorted streams, without duplicates."""
    filled = [stream for stream in streams if stream.places]
    if len(filled) == 1:
        return filled[0].records[:wanted]
    records: list[Record] = []
    last = None
    for place, record in heapq.merge(*(stream.pairs() for stream in filled), key=_place):
        # A sort key ends with the name: equal keys are one document.
        if place == last:
            continue
        if wanted is not None and len(records) == wanted:
            break
        last = place
        records.append(record)
        if len(records) % STEP_DOCUMENTS == 0:
            yield
    return records


def _place(pair: tuple[bytes, Record]) -> bytes:
    return pair[0]
