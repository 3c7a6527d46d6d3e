"""Targets of a listener: documents by name, or a query. Computes the changes of each commit for a target.

A target returns a mapping from document names to their new version: a Record that belongs to the target now, or None
for a document outside of the target. ``watch`` turns the mapping into messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from firelite.documents.paths import check_document_name
from firelite.documents.record import Record
from firelite.errors import InvalidArgument
from firelite.query.planner import IndexHome, index_home
from firelite.query.query import Query
from firelite.query.slices import Steps, at_once
from firelite.storage.snapshot_scan import snapshot_steps
from firelite.storage.versions import Change, Store

type Events = dict[str, Record | None]


class DocumentsTarget:
    """Target of named documents."""

    def __init__(self, names: Sequence[str]) -> None:
        if not names:
            raise InvalidArgument("A documents target needs at least one document.")
        self.names = [check_document_name(name) for name in names]

    @property
    def homes(self) -> list[IndexHome]:
        """Keys under which the hub registers the target."""
        return [("document", name) for name in self.names]

    def open(self, store: Store, resume_us: int | None) -> Events:
        """Return all the documents, or those changed since ``resume_us``, and always the missing ones."""
        events: Events = {}
        for name in self.names:
            record = store.get(name)
            if record is None or resume_us is None or record.update_us > resume_us:
                events[name] = record
        return events

    def update(self, store: Store, changes: Sequence[Change]) -> Events:
        """Return the target's changes caused by a commit."""
        return {change.new.name: change.new if change.new.exists else None for change in changes}


@dataclass(slots=True)
class QueryTarget:
    """Target of a query's documents."""

    query: Query
    shown: dict[str, int] = field(default_factory=dict[str, int])  # name -> update time of the version sent
    _read: tuple[dict[str, Record], int] | None = None  # see read_steps

    @property
    def homes(self) -> list[IndexHome]:
        """Keys under which the hub registers the target."""
        return [index_home(self.query.scope)]

    def read_steps(self, store: Store, read_us: int) -> Steps[None]:
        """Read the result at a time, as it may take long; ``open`` adds the changes since then."""
        records, _ = yield from snapshot_steps(store, self.query, read_us)
        self._read = {record.name: record for record in records}, read_us

    def open(self, store: Store, resume_us: int | None) -> Events:
        """Return the whole result, or its changes since ``resume_us``, which the history must include."""
        records = self._newest(store)
        self.shown = {name: record.update_us for name, record in records.items()}
        if resume_us is None:
            return dict(records)
        if self.query.bounded:
            before, _ = at_once(snapshot_steps(store, self.query, resume_us))
            return _difference({record.name: record.update_us for record in before}, list(records.values()))
        newer: Events = {name: record for name, record in records.items() if record.update_us > resume_us}
        for name in store.changed_since(resume_us):
            if name not in self.shown and self.query.scope.contains(name):
                newer[name] = None
        return newer

    def _newest(self, store: Store) -> dict[str, Record]:
        """Return the documents of the newest result: those that were read, with the changes since then."""
        records, read_us = self._read or ({}, -1)
        self._read = None
        if read_us < store.horizon_us or (self.query.bounded and store.touches(self.query, read_us)):
            return {record.name: record for record in store.run(self.query)[0]}
        if not self.query.bounded:
            for name, record in store.changed_since(read_us).items():
                records.pop(name, None)
                if not (record.exists and self.query.scope.contains(name)):
                    continue
                if self.query.matches(record.fields(), record.key):
                    records[name] = record
        return records

    def update(self, store: Store, changes: Sequence[Change]) -> Events:
        """Return the target's changes caused by a commit."""
        events: Events = {}
        for change in changes:
            new = change.new
            if change.fields is not None and self._matches(new, change):
                events[new.name] = new
            elif new.name in self.shown:
                events[new.name] = None
        if not events:
            return events
        if self.query.bounded:
            records, _ = store.run(self.query)
            events = _difference(self.shown, records)
            self.shown = {record.name: record.update_us for record in records}
            return events
        for name, record in events.items():
            if record is None:
                del self.shown[name]
            else:
                self.shown[name] = record.update_us
        return events

    def _matches(self, new: Record, change: Change) -> bool:
        return self.query.scope.contains(new.name) and self.query.matches(change.fields, new.key)


type Target = DocumentsTarget | QueryTarget


def _difference(before: dict[str, int], found: list[Record]) -> Events:
    events: Events = {record.name: record for record in found if before.get(record.name) != record.update_us}
    names = {record.name for record in found}
    events.update(dict.fromkeys(name for name in before if name not in names))
    return events
