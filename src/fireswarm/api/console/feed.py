"""One listener on the tasks for all open pages: it tells them that something changed, and they read themselves anew."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

import anyio

from fireswarm.api.session import Kept
from fireswarm.client import Swarm
from fireswarm.errors import FireswarmError
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS

LISTENED = 25
"""Number of newest tasks that are listened to: one of them changes with every change of any task."""

PAUSE_SECONDS = 3.0
"""Minimum time between two reports of changes, and before a lost store is tried again."""

MAX_PAGES, MAX_PAGES_OF_BROWSER = 200, 20
"""Maximum number of open pages that hear of changes: of all browsers, and of one."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Feed(Kept):
    """Reports changes of tasks to any number of pages. ``away`` is True while the store cannot be read.

    It listens only while a page is open. What pages read is kept for some seconds, for all of them.
    """

    swarm: Swarm
    away: bool = False
    version: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _pages: Counter[str] = field(default_factory=Counter[str])

    async def follow(self) -> None:
        """Listen while pages are open, until canceled. A store that is away is tried again."""
        while True:
            await self._wanted.wait()
            try:
                query = queries.newest(TASKS, "updated_at", LISTENED)
                async with self.swarm.parts.store.listen(query) as batches:
                    async for _ in batches:
                        self._report(away=False)
                        await anyio.sleep(PAUSE_SECONDS)
                        if not self._pages:
                            break
            except* FireswarmError as errors:
                logger.warning("the console cannot read the store: %s", errors.exceptions[0])
                self._report(away=True)
                await anyio.sleep(PAUSE_SECONDS)

    async def changed_since(self, version: int) -> int:
        """Wait for a change after *version*, and return the new version."""
        while self.version == version:
            await self._changed.wait()
        return self.version

    def open_page(self, browser: str) -> bool:
        """Count a page that wants to hear of changes; False, and nothing is counted, if there are too many."""
        if self._pages[browser] >= MAX_PAGES_OF_BROWSER or self._pages.total() >= MAX_PAGES:
            return False
        self._pages[browser] += 1
        self._wanted.set()
        return True

    def close_page(self, browser: str) -> None:
        """Count a page less."""
        self._pages[browser] -= 1
        if not self._pages[browser]:
            del self._pages[browser]
        if not self._pages:
            self._wanted = anyio.Event()

    def report_store(self, *, away: bool) -> None:
        """Note whether a page could read the store, and report a change of that."""
        if away != self.away:
            self._report(away=away)

    def _report(self, *, away: bool) -> None:
        self.away = away
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()
