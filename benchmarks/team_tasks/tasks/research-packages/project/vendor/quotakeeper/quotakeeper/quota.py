"""A quota, and the arithmetic of GCRA. Pure."""

from dataclasses import dataclass

DEFAULT_BURST = 5


@dataclass(frozen=True)
class Quota:
    """``per_second`` calls in the long run, and ``burst`` calls at once beyond that."""

    per_second: float
    burst: int = DEFAULT_BURST

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 0:
            raise ValueError("a quota needs a rate above zero and a burst of zero or more")

    @property
    def interval(self) -> float:
        """Seconds between two calls at the even rate."""
        return 1.0 / self.per_second

    @property
    def tolerance(self) -> float:
        """How far the due time of a call may lie ahead of the clock."""
        return self.burst * self.interval + 1e-9  # for the rounding of sums

    def due_after(self, due: float | None, now: float) -> float | None:
        """Return the due time after a call that comes now, or None if the call is too early."""
        current = max(due if due is not None else now, now)
        return current + self.interval if current - now <= self.tolerance else None

    def retry_after(self, due: float, now: float) -> float:
        """Seconds until a call will be allowed again."""
        return max(0.0, due - self.tolerance - now)
