"""The window: each hit is kept until it is older than the window."""

import time
from collections.abc import Callable

from drip import keep
from drip.errors import TooMany

SWEEP_EVERY = 10_000


class Window:
    """At most ``limit`` hits of a key in any ``seconds``.

    The hits themselves are kept, so a window needs memory for ``limit`` times of each key that is in use.
    """

    def __init__(
        self,
        limit: int,
        seconds: float,
        *,
        name: str = "",
        sweep_every: int = SWEEP_EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if limit < 1 or seconds <= 0:
            raise ValueError("a window needs a limit and a length above zero")
        self.limit = limit
        self.seconds = seconds
        self.name = name
        self.sweep_every = sweep_every
        self.clock = clock
        self._hits = 0

    def hit(self, key: str) -> int:
        """Count a call, and return how many are left. Raises TooMany."""
        with keep.lock():
            now = self.clock()
            hits = keep.hits_of(self._full(key))
            while hits and hits[0] <= now - self.seconds:
                hits.popleft()
            if len(hits) >= self.limit:
                raise TooMany(key, hits[0] + self.seconds - now)
            hits.append(now)
            self._hits += 1
            if self._hits % self.sweep_every == 0:
                keep.sweep(now - self.seconds)
            return self.limit - len(hits)

    def left(self, key: str) -> int:
        """Return how many calls a key has left; nothing is counted."""
        with keep.lock():
            now = self.clock()
            return self.limit - sum(at > now - self.seconds for at in keep.hits_of(self._full(key)))

    def forget(self, key: str) -> None:
        """Forget the calls of a key."""
        with keep.lock():
            keep.drop(self._full(key))

    def _full(self, key: str) -> str:
        return f"{self.name}/{key}"
