"""Read the events of a run: all of them, or only the new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fireswarm.contracts.ports import Snapshot, Store
from fireswarm.storage.documents import queries

Event = Mapping[str, Any]
"""One event of a run: ``ts``, ``type`` and ``payload``."""


async def read_events(store: Store, run: Snapshot) -> list[Mapping[str, Any]]:
    """Return all events of a run in order: first those on pages, then those on the run document.

    What a hand wrote that is no event is left out: an event is a map, with a map as its payload.
    """
    data = run.data or {}
    events: list[Mapping[str, Any]] = []
    if data.get("journal_pages"):
        for page in await store.query(queries.journal(run.path)):
            events += _events(page)
    return events + _events(run)


@dataclass(frozen=True, slots=True)
class EventsRead:
    """Some events of a run in order; ``earlier`` is the page of its journal before which there are more, 0 for none."""

    events: list[Event]
    earlier: int


async def read_last_events(store: Store, run: Snapshot, before: int, pages: int) -> EventsRead:
    """Return the events on the last *pages* pages of a run's journal and on its document, or before a page.

    A page costs a read, and a thousand pages one more. *before* is 0 for the end.
    """
    data, last = run.data or {}, before - 1
    if not before:
        last = await store.count(queries.journal(run.path)) if data.get("journal_pages") else 0
    first = max(1, last + 1 - pages)
    names = [f"{run.path}/journal/{number:06d}" for number in range(first, last + 1)]
    events = [event for page in await store.get_many(names) for event in _events(page)] if names else []
    if not before:
        events += _events(run)
    return EventsRead(events, first if first > 1 else 0)


@dataclass(slots=True)
class RunReader:
    """Reads the new events of one run.

    ``page`` is the first page that may still grow; ``before`` is the number of events before it; ``told`` is the number
    of events returned so far.
    """

    store: Store
    page: int = 1
    before: int = 0
    told: int = 0

    async def news(self, run: Snapshot) -> list[Event]:
        """Return the events added since the last call, in order."""
        data = run.data or {}
        start = self.before
        events = await self._read_pages(run.path) if data.get("journal_pages") else []
        events += _events(run)
        new = events[max(0, self.told - start) :]
        self.told = max(self.told, start + len(events))
        return new

    async def _read_pages(self, path: str) -> list[Event]:
        """Return the events from page ``page`` on and move ``page`` to the last one."""
        if not self.told:
            pages = await self.store.query(queries.journal(path))
            return self._start_at([_events(page) for page in pages])
        found: list[list[Event]] = []
        while True:
            names = [f"{path}/journal/{number:06d}" for number in (self.page, self.page + 1)]
            here, following = await self.store.get_many(names)
            if here.data is None:
                return [event for page in found for event in page]
            found.append(_events(here))
            if following.data is None:
                return [event for page in found for event in page]
            self.page, self.before = self.page + 1, self.before + len(found[-1])

    def _start_at(self, pages: Sequence[list[Event]]) -> list[Event]:
        self.page = max(1, len(pages))
        self.before = sum(len(page) for page in pages[:-1])
        return [event for page in pages for event in page]


def _events(page: Snapshot) -> list[Event]:
    """Return the events of a page or of a run's document."""
    found: Any = (page.data or {}).get("events")
    return [event for event in cast("list[Any]", found) if _is_event(event)] if isinstance(found, list) else []


def _is_event(event: Any) -> bool:
    return isinstance(event, Mapping) and isinstance(cast("Event", event).get("payload") or {}, Mapping)
