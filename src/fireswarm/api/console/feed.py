"""One listener on the tasks for all open pages: it tells them that something changed, and they read themselves anew."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import anyio

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
class Feed:
    """Reports changes of tasks to any number of pages. ``away`` is True while the store cannot be read.

    It listens only while a page is open. ``remember`` keeps what pages read for some seconds, for all of them.
    """

    swarm: Swarm
    away: bool = False
    version: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _pages: Counter[str] = field(default_factory=Counter[str])
    _kept: dict[Hashable, tuple[float, Any]] = field(default_factory=dict[Hashable, tuple[float, Any]])
    _reading: defaultdict[Hashable, anyio.Lock] = field(default_factory=lambda: defaultdict(anyio.Lock))

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

    async def remember[T](self, name: Hashable, seconds: float, read: Callable[[], Awaitable[T]]) -> T:
        """Return what *read* gives, or gave within the last *seconds*. Pages that come meanwhile wait for one read."""
        async with self._reading[name]:
            now = anyio.current_time()
            if (kept := self._kept.get(name)) is not None and now - kept[0] < seconds:
                return kept[1]
            value = await read()
            self._kept[name] = anyio.current_time(), value
            return value

    def forget(self) -> None:
        """Read everything anew: this console changed something."""
        self._kept.clear()

    def report_store(self, *, away: bool) -> None:
        """Note whether a page could read the store, and report a change of that."""
        if away != self.away:
            self._report(away=away)

    def _report(self, *, away: bool) -> None:
        self.away = away
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()
