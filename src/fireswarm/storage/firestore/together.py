"""Send commits that wait at the same time as one: a commit costs a round trip, whatever its number of writes.

Each commit keeps its own preconditions. If the common one fails, each is sent by itself, so one never costs another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from fireswarm.errors import Conflict, StoreError

MAX_COMMITS = 20
MAX_BYTES = 1_000_000
"""Limits of a common commit, far below the 10 MiB of a request: a large one locks its documents for longer."""

IN_FLIGHT = 2
"""Number of common commits at a time; further ones wait, and are then sent together."""

Send = Callable[[Any, bool], Awaitable[Sequence[Any]]]
"""Sends a request and returns a result for each write. Its second argument is True if its writes may be applied."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """One commit. It has ended without results if it has to be sent by itself."""

    request: Any
    paths: frozenset[str]
    size: int
    taken: bool = False
    ended: anyio.Event = field(default_factory=anyio.Event)
    results: Sequence[Any] | None = None
    maybe_applied: bool = False


@dataclass(slots=True)
class CommonCommits:
    """Collects commits while `IN_FLIGHT` are on their way, and sends the collected ones as one."""

    send: Send
    waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    in_flight: int = 0
    landed: anyio.Event = field(default_factory=anyio.Event)

    async def commit(self, request: Any) -> Sequence[Any]:
        """Apply a request's writes and return their results. Raises the errors of *send*."""
        paths = frozenset(write.update.name or write.delete for write in request.writes)
        mine = _Waiting(request, paths, request.ByteSize())
        self.waiting.append(mine)
        try:
            await anyio.lowlevel.checkpoint()  # commits of turns that end in the same round of the event loop join
            while not mine.taken:
                if self.in_flight < IN_FLIGHT:
                    await self._send_group(mine)
                else:
                    await self.landed.wait()
            await mine.ended.wait()
        finally:
            if not mine.taken:
                self.waiting.remove(mine)
        if mine.results is not None:
            return mine.results
        return await self.send(request, mine.maybe_applied)

    async def _send_group(self, first: _Waiting) -> None:
        """Send *first* together with the others that wait and fit."""
        group = self._take_group(first)
        self.in_flight += 1
        try:
            if len(group) > 1:
                await self._send_as_one(group)
            else:
                first.results = await self.send(first.request, False)
        finally:
            self.in_flight -= 1
            for item in group:
                item.ended.set()
            self.landed.set()
            self.landed = anyio.Event()

    def _take_group(self, first: _Waiting) -> list[_Waiting]:
        """Take *first* and others that write other documents, within the limits."""
        group, paths, size = [first], set(first.paths), first.size
        for item in self.waiting:
            if item is first or len(group) == MAX_COMMITS or size + item.size > MAX_BYTES:
                continue
            if paths.isdisjoint(item.paths):
                group.append(item)
                paths |= item.paths
                size += item.size
        for item in group:
            item.taken = True
            self.waiting.remove(item)
        return group

    async def _send_as_one(self, group: Sequence[_Waiting]) -> None:
        """Send a group as one commit; after an error, each of its members is sent by itself."""
        merged = type(group[0].request)(database=group[0].request.database)
        for item in group:
            merged.writes.extend(item.request.writes)
        for item in group:
            item.maybe_applied = True  # until the store answers; also if the sender is canceled
        try:
            results = await self.send(merged, False)
        except (Conflict, StoreError) as error:
            for item in group:
                item.maybe_applied = error.ambiguous
            return
        start = 0
        for item in group:
            end = start + len(item.request.writes)
            item.results = results[start:end]
            start = end
