"""One listener on the tasks for all open pages: it tells them that something changed, and they read themselves anew."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

import anyio

from fireswarm.api.session import Kept
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot

LISTENED = 10
"""Number of newest tasks that are listened to: one of them changes with every change of any task."""

PAUSE_SECONDS = 3.0
"""Minimum time between two reports of changes, and before a lost store is tried again."""

READS_A_MINUTE = 25.0
"""Billed reads that open pages may cause, and as many at once: a day has 36,000, of 50,000 that are free."""

MINUTE = 60.0

MAX_PAUSE_SECONDS = 180.0
"""Longest pause between two reports, for a page that costs more than the reads of three minutes."""

KEPT_LONGER = 3
"""Factor by which pages keep what they read, where reads are billed."""

SETTLED_SECONDS = 11.0
"""Time after a change at which it is reported once more: the counts of a page are kept for ten seconds."""

MAX_PAGES, MAX_PAGES_OF_BROWSER = 200, 20
"""Maximum number of open pages that hear of changes: of all browsers, and of one."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Pace:
    """How often pages may read, so that they cause 25 billed reads a minute; 25 may come at once."""

    paid_until: float = 0.0

    def pay(self, reads: int, now: float) -> float:
        """Add reads until *now*, in seconds, and return how many seconds to wait until they are within the budget."""
        earned = max(self.paid_until, now - MINUTE)
        self.paid_until = min(earned + reads * MINUTE / READS_A_MINUTE, now + MAX_PAUSE_SECONDS)
        return max(0.0, self.paid_until - now)


@dataclass(slots=True)
class Feed(Kept):
    """Reports changes of tasks to any number of pages. ``away`` is True while the store cannot be read.

    ``reads`` are those of pages and of the listener since they were last counted.

    It listens only while a page is open. What pages read is kept for some seconds, for all of them. With *billed*,
    reads cost money: while many tasks change, changes are reported as seldom as the budget of reads asks for.
    """

    swarm: Swarm
    billed: bool = False
    away: bool = False
    version: int = 0
    newest: list[Task] | None = None
    reads: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _pages: Counter[str] = field(default_factory=Counter[str])
    _pace: Pace = field(default_factory=Pace)
    _settled: bool = True
    _news: anyio.Event = field(default_factory=anyio.Event)
    _heard: list[tuple[str, object]] | None = None

    async def follow(self) -> None:
        """Listen while pages are open, until canceled. A store that is away is tried again."""
        while True:
            await self._wanted.wait()
            pause = 0.0
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listen)
                    pause = await self._report_changes()
                    group.cancel_scope.cancel()
            except* FireswarmError as errors:
                logger.warning("the console cannot read the store: %s", errors.exceptions[0])
                self._report(away=True)
                pause = PAUSE_SECONDS
            finally:
                self.newest = None
            await anyio.sleep(pause)

    async def _listen(self) -> None:
        query = queries.newest(TASKS, "updated_at", LISTENED)
        first = True
        async with self.swarm.parts.store.listen(query) as batches:
            async for snapshots in batches:
                self.reads += max(1, len(snapshots)) if first else 1
                first = False
                heard = [(snapshot.id, snapshot.update_time) for snapshot in snapshots]
                tasks = parse_readable(snapshots, parse_task_snapshot)
                self.newest = sorted(tasks, key=lambda task: (task.updated_at, task.task_id), reverse=True)
                if heard != self._heard or self.away:
                    self._heard = heard
                    self._news.set()

    async def _report_changes(self) -> float:
        """Report changes until no page is open, or the budget of reads is used up; return how long to pause.

        The last change is reported twice: what pages keep may be older than it.
        """
        while self._pages:
            with anyio.move_on_after(MINUTE if self._settled else self.settle_seconds) as silent:
                await self._news.wait()
            if silent.cancelled_caught and self._settled:
                continue
            self._settled, self._news = silent.cancelled_caught, anyio.Event()
            self._report(away=False)
            await anyio.sleep(PAUSE_SECONDS)
            reads, self.reads = self.reads, 0
            if self.billed and (pause := self._pace.pay(reads, anyio.current_time())) > PAUSE_SECONDS:
                return pause
        return 0.0

    @property
    def settle_seconds(self) -> float:
        """Time after which what pages keep is read anew."""
        return SETTLED_SECONDS * self._longer

    @property
    def _longer(self) -> int:
        return KEPT_LONGER if self.billed else 1

    async def keep[T](self, name: Hashable, seconds: float, read: Callable[[], Awaitable[T]]) -> T:
        """Do as ``remember``, and keep it longer where reads are billed."""
        return await self.remember(name, seconds * self._longer, read)

    def forget(self) -> None:
        """Read everything anew: something has changed."""
        Kept.forget(self)
        self.newest = None

    async def changed_since(self, version: int) -> int:
        """Wait for a change after *version*, and return the new version."""
        while self.version == version:
            await self._changed.wait()
        return self.version

    def open_page(self, browser: str) -> bool:
        """Count a page that wants to hear of changes; False, and nothing is counted, if there are too many."""
        if self._pages[browser] >= MAX_PAGES_OF_BROWSER or self._pages.total() >= MAX_PAGES:
            return False
        if not self._pages:
            self.reads = 0  # of pages that nobody left open
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
