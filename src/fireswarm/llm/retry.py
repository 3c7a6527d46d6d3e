"""Retry policy of model calls. Pure, except for the random number generator passed in."""

from __future__ import annotations

import random
from dataclasses import dataclass

from fireswarm.errors import ModelUnavailable


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most ``retries`` repetitions; pauses in seconds, exponential with full jitter.

    Full jitter spreads callers that failed together over the whole interval, so that they do not retry at the same
    moment.
    """

    retries: int = 3
    base_seconds: float = 1.0
    max_seconds: float = 8.0

    def pause(self, attempt: int, error: ModelUnavailable, chance: random.Random) -> float | None:
        """Return the seconds to wait after failed *attempt* (from 1), or None to give up.

        A Retry-After of the provider is respected, with a little jitter added, unless it exceeds ``max_seconds``.
        """
        if attempt > self.retries or self.is_too_long(error.retry_after):
            return None
        ceiling = min(self.max_seconds, self.base_seconds * 2 ** (attempt - 1))
        jittered = chance.uniform(0.0, ceiling)
        if not error.retry_after:
            return jittered
        return error.retry_after + min(jittered, 0.1 * error.retry_after)

    def is_too_long(self, seconds: float | None) -> bool:
        """Return True if the pause is too long for a run to wait: the run ends, and can be resumed later."""
        return seconds is not None and seconds > self.max_seconds
