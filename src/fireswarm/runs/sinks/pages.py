"""Storage of a run's events: first on the run document, then on pages of its subcollection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.ports import Merge, Store, Write
from fireswarm.contracts.swarm.run import MAX_RUN_EVENTS
from fireswarm.storage.documents import queries

PAGE_EVENTS = 16
"""Events per page.

Each flush rewrites the last page until it is full. Larger pages cost more time per flush; smaller pages cost more
documents.
"""


@dataclass(frozen=True, slots=True)
class NextPage:
    """The page for the next flush: its number from 1, its events, and the number of new ones."""

    number: int
    events: list[dict[str, Any]]
    added: int


@dataclass(slots=True)
class Pages:
    """A run's events that are not on a full page yet, and the number of its pages.

    The first flush writes the events onto the run document. From the second on they go to pages, so the cost per step
    does not grow with the run. ``inline`` counts the events on the run document.
    """

    run: str
    session_hash: str
    events: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    inline: int = 0
    _last: list[dict[str, Any]] = field(default_factory=list)
    _on_pages: int = 0

    @property
    def total(self) -> int:
        """Number of the run's events so far."""
        return self._on_pages + len(self.events)

    async def restore(self, store: Store, document: Mapping[str, Any]) -> None:
        """Continue from stored data: the events on the document, and the number of pages."""
        stored = document.get("events")
        self.events = [dict(event) for event in stored if isinstance(event, dict)] if isinstance(stored, list) else []
        self.inline = len(self.events)
        if document.get("journal_pages"):
            pages = await store.query(queries.journal(self.run))
            self.count = len(pages)
            self._on_pages = sum(len((page.data or {}).get("events", [])) for page in pages)

    def next(self) -> NextPage | None:
        """Return the last page with the new events, or the page after it; None if nothing is new."""
        if len(self.events) <= self.inline:
            return None
        grows = bool(self._last) and len(self._last) < PAGE_EVENTS
        number = self.count if grows else self.count + 1
        return NextPage(number, [*self._last, *self.events] if grows else list(self.events), len(self.events))

    def write_of(self, number: int, events: Sequence[Mapping[str, Any]]) -> Write:
        """Return the write of a whole page. The write may be repeated."""
        return Merge(f"{self.run}/journal/{number:06d}", {"session_hash": self.session_hash, "events": list(events)})

    def mark_stored(self, page: NextPage) -> None:
        """Note that *page* is stored: its events are removed from the buffer."""
        self.count, self._last, self.inline = page.number, page.events, 0
        self._on_pages += page.added
        del self.events[: page.added]

    def closing(self) -> tuple[dict[str, Any], list[Write]]:
        """Return the run document's final event fields, and the write of the events that do not fit on it."""
        over = max(0, len(self.events) - MAX_RUN_EVENTS)
        writes = [self.write_of(self.count + 1, self.events[:over])] if over else []
        fields: dict[str, Any] = {"events": self.events[over:], "events_total": self.total}
        if self.count or writes:
            fields["journal_pages"] = self.count + len(writes)
        return fields, writes
