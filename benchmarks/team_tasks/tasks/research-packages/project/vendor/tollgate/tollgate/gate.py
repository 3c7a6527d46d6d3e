"""The gate: asks the store for a token, and decides what an outage of the store means."""

import logging
import time
from collections.abc import Callable

from tollgate.rates import Rate
from tollgate.stores import Store, StoreError

log = logging.getLogger("tollgate")

ALLOW, DENY, RAISE = "allow", "deny", "raise"
STORE_TIMEOUT = 0.2
EXPIRE_FACTOR = 2


class Gate:
    """Lets calls pass as long as the bucket of their key has a token."""

    def __init__(
        self,
        store: Store,
        rate: Rate,
        *,
        prefix: str = "tollgate:",
        on_error: str = ALLOW,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if on_error not in (ALLOW, DENY, RAISE):
            raise ValueError(f"on_error is one of {ALLOW}, {DENY}, {RAISE}")
        self.store = store
        self.rate = rate
        self.prefix = prefix
        self.on_error = on_error
        self.clock = clock

    def allow(self, key: str, tokens: float = 1.0) -> bool:
        """Take tokens from the bucket of *key*; False if it has not enough."""
        expire = self.rate.fill_seconds * EXPIRE_FACTOR
        try:
            left = self.store.take(
                self.prefix + key, tokens, self.rate.size, self.rate.per_second, self.clock(), expire, STORE_TIMEOUT
            )
        except StoreError as error:
            return self._without_store(key, error)
        return left >= 0

    def remaining(self, key: str) -> float:
        """Return the tokens of a bucket; nothing is taken."""
        return max(0.0, self.store.peek(self.prefix + key, self.rate.size, self.rate.per_second, self.clock()))

    def wait(self, key: str, most_seconds: float = 10.0) -> bool:
        """Wait until a token is there; False if that would take longer than *most_seconds*."""
        missing = 1.0 - self.remaining(key)
        pause = max(0.0, missing / self.rate.per_second)
        if pause > most_seconds:
            return False
        time.sleep(pause)
        return self.allow(key)

    def _without_store(self, key: str, error: StoreError) -> bool:
        """Decide about a call that could not be counted."""
        log.warning("the store cannot be reached, %s: %s", key, error)
        if self.on_error == RAISE:
            raise error
        return self.on_error == ALLOW
