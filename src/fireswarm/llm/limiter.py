"""Rate limiter for a provider, within a process and across the fleet; after a 429 or 529 the whole fleet pauses.

Within a process, requests and tokens per minute are buckets that refill steadily. Across processes, one document per
provider holds this minute's usage and the end of the shared pause. Processes reserve their share in blocks; an unused
share expires with its minute.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from fireswarm.contracts.ports import Clock, Create, Merge, Store, Update
from fireswarm.errors import Conflict, ModelPaused
from fireswarm.storage.documents.paths import MEMORY

MINUTE = 60.0

BLOCKS_A_MINUTE = 60
"""Fraction of a minute's allowance that a process reserves at once.

Firestore takes about one write per second to one document, and forty processes with a block each leave a third of the
minute to others.
"""

SPREAD_SECONDS = 2.0
"""After a pause caused by another process, callers return spread over this time, not all at once."""

FRESH_SECONDS = 5.0
"""Maximum age of the cached shared pause when a call is admitted: at most one read in this time, and only during calls.
"""

SHARED_TTL = timedelta(days=1)


class Shared(Protocol):
    """State shared by processes: the minute's allowance and the common pause."""

    async def take(self, requests: int, tokens: int) -> float:
        """Reserve a share; returns 0, or the seconds to wait if none is left."""
        ...

    async def pause_left(self) -> float:
        """Return the remaining seconds of the common pause."""
        ...

    async def pause(self, seconds: float) -> None:
        """Start a common pause."""
        ...


@dataclass(slots=True)
class Bucket:
    """An allowance of ``rate`` per minute that refills steadily, up to one minute's amount."""

    rate: float
    level: float = 0.0
    at: datetime | None = None

    def wait(self, amount: float, now: datetime) -> float:
        """Take *amount* and return 0, or the seconds to wait. Amounts above a minute's rate count as that rate."""
        if self.at is None:
            self.level, self.at = self.rate, now
        self.level = min(self.rate, self.level + (now - self.at).total_seconds() * self.rate / MINUTE)
        self.at = now
        wanted = min(amount, self.rate)
        if self.level >= wanted:
            self.level -= amount
            return 0.0
        return (wanted - self.level) * MINUTE / self.rate

    def put(self, amount: float) -> None:
        """Add an amount reserved for this process."""
        self.level += amount


@dataclass(slots=True)
class Limiter:
    """Admits calls to one provider. Without limits it only waits for pauses to end.

    A pause of more than ``longest_pause`` seconds raises ModelPaused.
    """

    clock: Clock
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    shared: Shared | None = None
    longest_pause: float = math.inf
    chance: random.Random = field(default_factory=random.Random)
    _requests: Bucket | None = None
    _tokens: Bucket | None = None
    _paused_until: datetime | None = None
    _granted: list[float] = field(default_factory=lambda: [0.0, 0.0])
    _granted_in: datetime | None = None

    def __post_init__(self) -> None:
        """Create the buckets for the configured limits."""
        self._requests = Bucket(self.requests_per_minute) if self.requests_per_minute else None
        self._tokens = Bucket(self.tokens_per_minute) if self.tokens_per_minute else None

    async def admit(self, tokens: int) -> float:
        """Wait until a call of *tokens* may be made; returns the seconds waited. Raises ModelPaused."""
        waited = 0.0
        while pause := await self._pause(tokens):
            await self.clock.sleep(pause)
            waited += pause
        return waited

    async def back_off(self, seconds: float) -> None:
        """Pause all calls for *seconds* after a 429 or 529 of the provider."""
        until = self.clock.now() + timedelta(seconds=seconds)
        self._paused_until = max(until, self._paused_until or until)
        if self.shared is not None:
            await self.shared.pause(seconds)

    async def _pause(self, tokens: int) -> float:
        if left := await self._refusal_left():
            if left > self.longest_pause:
                until = self.clock.now() + timedelta(seconds=left)
                raise ModelPaused("the provider refused earlier calls", until, retry_after=left)
            return left + self.chance.uniform(0.0, min(left, SPREAD_SECONDS))
        if self._requests is None and self._tokens is None:
            return 0.0
        return await self._fleet(self.shared, tokens) if self.shared is not None else self._alone(tokens)

    async def _refusal_left(self) -> float:
        now = self.clock.now()
        if self._paused_until is not None and self._paused_until > now:
            return (self._paused_until - now).total_seconds()
        return await self.shared.pause_left() if self.shared is not None else 0.0

    def _alone(self, tokens: int) -> float:
        now = self.clock.now()
        if self._requests is not None and (pause := self._requests.wait(1, now)):
            return pause
        if self._tokens is not None and (pause := self._tokens.wait(tokens, now)):
            if self._requests is not None:
                self._requests.put(1)
            return pause
        return 0.0

    async def _fleet(self, shared: Shared, tokens: int) -> float:
        """Take from this process's share of the minute; if it is used up, reserve another block or the rest."""
        minute = self.clock.now().replace(second=0, microsecond=0)
        if minute != self._granted_in:  # a share expires with its minute, a debt remains
            self._granted_in = minute
            self._granted = [min(0.0, left) for left in self._granted]
        rates = (self.requests_per_minute, self.tokens_per_minute)
        need = (1 if rates[0] else 0, tokens if rates[1] else 0)
        missing = [math.ceil(amount - left) for amount, left in zip(need, self._granted, strict=True)]
        if max(missing) > 0:
            least = [min(rate or 0, max(0, amount)) for rate, amount in zip(rates, missing, strict=True)]
            block = [_block(rate, amount) for rate, amount in zip(rates, least, strict=True)]
            pause = await shared.take(*block)
            if pause and block != least:
                block, pause = least, await shared.take(*least)
            if pause:
                return pause
            self._granted = [left + taken for left, taken in zip(self._granted, block, strict=True)]
        self._granted = [left - amount for left, amount in zip(self._granted, need, strict=True)]
        return 0.0


def _block(rate: int | None, missing: int) -> int:
    return min(rate, max(missing, rate // BLOCKS_A_MINUTE)) if rate and missing else 0


@dataclass(slots=True)
class FirestoreLimits:
    """Shared state in one document of ``mcp_memory``, changed by compare-and-set."""

    store: Store
    clock: Clock
    provider: str
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    _pause_until: datetime | None = None
    _read_at: datetime | None = None

    @property
    def path(self) -> str:
        """Path of the shared document."""
        return f"{MEMORY}/rate-limit-{self.provider}"

    async def take(self, requests: int, tokens: int) -> float:
        """Reserve a share of this minute's allowance; returns the seconds to wait if it is used up."""
        while True:
            snapshot = await self.store.get(self.path)
            now = self.clock.now()
            data: Mapping[str, Any] = snapshot.data or {}
            minute = now.replace(second=0, microsecond=0)
            minute = max(minute, data.get("minute") or minute)  # another process's clock may be ahead
            same = data.get("minute") == minute
            used = (int(data.get("requests", 0)), int(data.get("tokens", 0))) if same else (0, 0)
            if (self.requests_per_minute and used[0] + requests > self.requests_per_minute) or (
                self.tokens_per_minute and used[1] + tokens > self.tokens_per_minute
            ):
                return MINUTE - (now - minute).total_seconds()
            fields = self._fields() | {
                "minute": minute,
                "requests": used[0] + requests,
                "tokens": used[1] + tokens,
            }
            write = (
                Create(self.path, fields)
                if snapshot.data is None
                else Update(self.path, fields, if_update_time=snapshot.update_time)
            )
            try:
                await self.store.commit([write])
            except Conflict:
                continue  # another process took its share meanwhile: read again
            return 0.0

    async def pause_left(self) -> float:
        """Return the remaining seconds of the common pause; reads at most once per ``FRESH_SECONDS``."""
        now = self.clock.now()
        if self._read_at is None or (now - self._read_at).total_seconds() >= FRESH_SECONDS:
            self._read_at = now
            data = (await self.store.get(self.path)).data or {}
            self._pause_until = data.get("paused_until")
        if self._pause_until is None or self._pause_until <= now:
            return 0.0
        return (self._pause_until - now).total_seconds()

    async def pause(self, seconds: float) -> None:
        """Make every process wait."""
        until = self.clock.now() + timedelta(seconds=seconds)
        known = ((await self.store.get(self.path)).data or {}).get("paused_until")
        self._pause_until = max(until, known or until)  # do not shorten the pause of another process
        if self._pause_until > until:
            return
        await self.store.commit([Merge(self.path, self._fields() | {"paused_until": until})])

    def _fields(self) -> dict[str, Any]:
        return {"type": "rate_limit", "provider": self.provider, "expires_at": self.clock.now() + SHARED_TTL}
