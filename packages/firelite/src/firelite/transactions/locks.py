"""Document locks: shared for transactional reads, exclusive for writes, first come, first served.

Readers share a document; a writer waits until it is alone. A request after a waiting writer waits behind it, unless its
owner already holds the document: then it precedes all others, which wait for that owner anyway.

As in production, a transaction that commits a write does not wait for transactions that read later: they lose their
locks and get ABORTED at their commit. It waits for transactions that read earlier, and a write outside a transaction
waits for all. In a deadlock, the transaction with the latest first read is the victim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from firelite.errors import Aborted

# Production waits this long before it aborts a write that a transaction blocks ("lock timeout", about 15 s).
LOCK_WAIT_SECONDS = 15.0


@dataclass(eq=False, slots=True)
class Owner:
    """A transaction or write that holds or waits for locks.

    ``age`` orders transactions by their first read, smaller is older. It is None for a plain write, which holds no lock
    while it waits and is never the victim of a deadlock. ``precedes`` is True for the commit of a transaction that has
    read: it takes locks from younger transactions, unless they are ``committing`` and hold all that they need.
    """

    label: str
    age: int | None = None
    held: dict[str, bool] = field(default_factory=dict[str, bool])  # name -> exclusive?
    on_abort: Callable[[str], None] | None = None
    precedes: bool = False
    committing: bool = False


@dataclass(eq=False, slots=True)
class _Request:
    owner: Owner
    names: frozenset[str]
    exclusive: bool
    granted: asyncio.Future[None]


class LockTable:
    """All locks of a database. Belongs to one event loop; not thread-safe."""

    def __init__(self, wait_seconds: float = LOCK_WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._holders: dict[str, list[Owner]] = {}
        self._waiting: list[_Request] = []

    @property
    def idle(self) -> bool:
        """True if there are no locks and no waiters; a plain write then needs no lock."""
        return not self._holders and not self._waiting

    def try_acquire(self, owner: Owner, names: Iterable[str], *, exclusive: bool) -> bool:
        """Take all the locks if that is possible without waiting; otherwise take none and return False."""
        wanted = frozenset(names)
        if self._blockers(owner, wanted, exclusive, self._waiting):
            return False
        self._grant(owner, wanted, exclusive)
        return True

    async def acquire(self, owner: Owner, names: Iterable[str], *, exclusive: bool) -> None:
        """Take all the locks, waiting if necessary. Raises Aborted for a deadlock's victim or after the lock wait."""
        wanted = frozenset(names)
        if owner.precedes and exclusive:
            self._overtake(owner, wanted)
        if self.try_acquire(owner, wanted, exclusive=exclusive):
            return
        request = _Request(owner, wanted, exclusive, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._break_circles(request)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await request.granted
        except TimeoutError:
            reason = f"{owner.label} waited more than {self._wait_seconds:g} s for a lock on {_some(wanted)}; retry."
            if owner.age is not None:
                self.abort(owner, reason)  # clients start over without a rollback, so release its locks here
            raise Aborted(reason) from None
        finally:
            if request in self._waiting:
                self._waiting.remove(request)
                self._wake()

    def release(self, owner: Owner) -> None:
        """Release all locks of the owner and wake waiting requests."""
        for name in owner.held:
            holders = self._holders[name]
            holders.remove(owner)
            if not holders:
                del self._holders[name]
        owner.held.clear()
        self._wake()

    def abort(self, owner: Owner, reason: str) -> None:
        """Release the owner's locks; its waiting requests fail with Aborted."""
        for request in [request for request in self._waiting if request.owner is owner]:
            self._waiting.remove(request)
            if not request.granted.done():
                request.granted.set_exception(Aborted(reason))
        if owner.on_abort is not None:
            owner.on_abort(reason)
        self.release(owner)

    def _overtake(self, owner: Owner, names: frozenset[str]) -> None:
        """Abort the younger transactions that hold the documents."""
        for holder in self._blockers(owner, names, exclusive=True, ahead=()):
            if holder.age is not None and owner.age is not None and holder.age > owner.age and not holder.committing:
                self.abort(holder, f"{holder.label} lost its locks to an older transaction; retry it.")

    def _grant(self, owner: Owner, names: frozenset[str], exclusive: bool) -> None:
        for name in names:
            if name not in owner.held:
                self._holders.setdefault(name, []).append(owner)
            owner.held[name] = exclusive or owner.held.get(name, False)

    def _blockers(self, owner: Owner, names: frozenset[str], exclusive: bool, ahead: Iterable[_Request]) -> set[Owner]:
        """Return all owners that the owner would have to wait for."""
        blockers: set[Owner] = set()
        for name in names:
            for holder in self._holders.get(name, ()):
                if holder is not owner and (exclusive or holder.held[name]):
                    blockers.add(holder)
        for request in ahead:
            if request.owner is owner or not (exclusive or request.exclusive):
                continue
            if any(name not in owner.held for name in request.names & names):
                blockers.add(request.owner)
        return blockers

    def _wake(self) -> None:
        """Grant every waiting request that is not blocked any more, in order."""
        ahead: list[_Request] = []
        for request in list(self._waiting):
            if request.granted.done():
                continue
            if self._blockers(request.owner, request.names, request.exclusive, ahead):
                ahead.append(request)
                continue
            self._waiting.remove(request)
            self._grant(request.owner, request.names, request.exclusive)
            request.granted.set_result(None)

    def _break_circles(self, request: _Request) -> None:
        while not request.granted.done():
            circle = self._circle(request.owner)
            ages = [(owner.age, owner) for owner in circle if owner.age is not None]
            if not ages:
                return
            victim = max(ages, key=lambda item: item[0])[1]
            self.abort(victim, f"{victim.label} lost a deadlock with an older transaction; retry it.")

    def _circle(self, start: Owner) -> list[Owner]:
        """Return the owners on a cycle of waits from ``start`` back to itself; empty if there is none."""
        waits = self._waits_for()
        stack: list[tuple[Owner, list[Owner]]] = [(start, [start])]
        seen: set[Owner] = set()
        while stack:
            owner, way = stack.pop()
            for blocker in waits.get(owner, ()):
                if blocker is start:
                    return way
                if blocker not in seen:
                    seen.add(blocker)
                    stack.append((blocker, [*way, blocker]))
        return []

    def _waits_for(self) -> dict[Owner, set[Owner]]:
        waits: dict[Owner, set[Owner]] = {}
        for position, request in enumerate(self._waiting):
            blockers = self._blockers(request.owner, request.names, request.exclusive, self._waiting[:position])
            waits.setdefault(request.owner, set()).update(blockers)
        return waits


def _some(names: frozenset[str]) -> str:
    first = min(names)
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"
