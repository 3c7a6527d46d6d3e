"""Where a run's events are kept: on the run document while it is short, then on pages of its subcollection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.ports import Merge, Store, Write
from fireswarm.contracts.swarm.run import MAX_RUN_EVENTS
from fireswarm.storage.documents import queries

PAGE_EVENTS = 16
"""A page is written again with each flush until it holds so many events: more cost time, since all of them are
written each time; fewer cost room, since every document has its overhead."""


@dataclass(frozen=True, slots=True)
class NextPage:
    """A page as the next flush writes it: its number from 1, its events, and how many of them are new."""

    number: int
    events: list[dict[str, Any]]
    added: int


@dataclass(slots=True)
class Pages:
    """The events of one run that are not on a full page yet, and how many pages there are.

    The first flush writes the events onto the run document. From the second on they go to pages, so a long run costs
    the same per step from first to last. ``inline`` counts the events that the run document holds.
    """

    run: str
    events: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    inline: int = 0
    _last: list[dict[str, Any]] = field(default_factory=list)
    _on_pages: int = 0

    @property
    def total(self) -> int:
        """Number of events of the run so far."""
        return self._on_pages + len(self.events)

    async def restore(self, store: Store, document: Mapping[str, Any]) -> None:
        """Go on from what an earlier process stored: the events on the document, and the number of pages."""
        self.events = [dict(event) for event in document.get("events") or []]
        self.inline = len(self.events)
        if document.get("journal_pages"):
            pages = await store.query(queries.journal(self.run))
            self.count = len(pages)
            self._on_pages = sum(len((page.data or {}).get("events", [])) for page in pages)

    def next(self) -> NextPage | None:
        """Return the last page with what is new, or the page after it; None when nothing is new."""
        if len(self.events) <= self.inline:
            return None
        grows = bool(self._last) and len(self._last) < PAGE_EVENTS
        number = self.count if grows else self.count + 1
        return NextPage(number, [*self._last, *self.events] if grows else list(self.events), len(self.events))

    def write_of(self, number: int, events: Sequence[Mapping[str, Any]]) -> Write:
        """Return the write of a whole page, so that it may be sent twice."""
        return Merge(f"{self.run}/journal/{number:06d}", {"events": list(events)})

    def mark_stored(self, page: NextPage) -> None:
        """Note that *page* is durable: its events leave the run document."""
        self.count, self._last, self.inline = page.number, page.events, 0
        self._on_pages += page.added
        del self.events[: page.added]

    def closing(self) -> tuple[dict[str, Any], list[Write]]:
        """Return the run document's last fields about events, and the write of those it has no room for."""
        over = max(0, len(self.events) - MAX_RUN_EVENTS)
        writes = [self.write_of(self.count + 1, self.events[:over])] if over else []
        fields: dict[str, Any] = {"events": self.events[over:], "events_total": self.total}
        if self.count or writes:
            fields["journal_pages"] = self.count + len(writes)
        return fields, writes
