"""The keeper: decides about calls with one compare-and-set each, at the time of the store."""

from dataclasses import dataclass

from quotakeeper.quota import Quota
from quotakeeper.stores import Store, StoreUnavailable

OPEN, CLOSED = "open", "closed"
TRIES = 5


class Undecided(Exception):
    """The store could not be asked, and the keeper is closed."""


@dataclass(frozen=True)
class Decision:
    """What was decided. ``counted`` is False for a call that was allowed without being counted."""

    allowed: bool
    retry_after: float = 0.0
    counted: bool = True


class Keeper:
    """Decides about the calls of each key."""

    def __init__(
        self, store: Store, quota: Quota, *, fail_mode: str = CLOSED, tries: int = TRIES, prefix: str = "quota/"
    ) -> None:
        if fail_mode not in (OPEN, CLOSED):
            raise ValueError("fail_mode is open or closed")
        self.store = store
        self.quota = quota
        self.fail_mode = fail_mode
        self.tries = tries
        self.prefix = prefix

    def check(self, key: str) -> Decision:
        """Decide about a call. Raises Undecided if the store cannot be asked and the keeper is closed."""
        try:
            return self._decide(self.prefix + key)
        except StoreUnavailable as error:
            if self.fail_mode == OPEN:
                return Decision(True, counted=False)
            raise Undecided(f"{key} cannot be checked: {error}") from error

    def _decide(self, key: str) -> Decision:
        for _ in range(self.tries):
            now = self.store.now()
            due = self.store.get(key)
            following = self.quota.due_after(due, now)
            if following is None:
                assert due is not None
                return Decision(False, self.quota.retry_after(due, now))
            if self.store.compare_and_set(key, due, following):
                return Decision(True)
        raise StoreUnavailable(f"{self.tries} others were faster")
