"""When a failed call of a model is repeated, or made in another way. Pure, except for the given random numbers."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from fireswarm.errors import ModelError, ModelRejected, ModelUnavailable, PromptTooLong

_NOT_ABOUT_SCHEMA = re.compile(r"(?i)api.key|credit balance|billing|exceeds the maximum|non-empty")
"""400 errors unrelated to the schema: a retry without the schema would not help."""

OVERLOADED = frozenset({429, 529})
"""HTTP statuses after which the whole fleet waits, not only this call."""

GONE = 404
"""HTTP status for a model that the provider does not have, or no longer."""


def is_about_schema(error: ModelRejected) -> bool:
    """Return True if the model may reject structured output: then the schema goes into the prompt."""
    too_long = isinstance(error, PromptTooLong)
    return error.status == 400 and not too_long and not _NOT_ABOUT_SCHEMA.search(str(error))


def can_be_replaced(error: ModelError) -> bool:
    """Return True if another model may answer: this one cannot be reached, or does not exist."""
    return isinstance(error, ModelUnavailable) or (isinstance(error, ModelRejected) and error.status == GONE)


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
