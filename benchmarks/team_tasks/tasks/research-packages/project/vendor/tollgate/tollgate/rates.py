"""Rates: how fast a bucket fills, and how much it holds."""

from dataclasses import dataclass

BURST_FACTOR = 2
"""A bucket without a capacity of its own holds so many times the tokens of one period."""


@dataclass(frozen=True)
class Rate:
    """So many tokens in so many seconds. ``capacity`` is what a full bucket holds."""

    tokens: float
    per_seconds: float = 1.0
    capacity: float | None = None

    def __post_init__(self) -> None:
        if self.tokens <= 0 or self.per_seconds <= 0:
            raise ValueError("a rate needs tokens and seconds above zero")
        if self.capacity is not None and self.capacity < 1:
            raise ValueError("a bucket that holds less than one token lets nothing pass")

    @property
    def per_second(self) -> float:
        """Tokens that a bucket gains in a second."""
        return self.tokens / self.per_seconds

    @property
    def size(self) -> float:
        """Tokens of a full bucket."""
        return self.capacity if self.capacity is not None else self.tokens * BURST_FACTOR

    @property
    def fill_seconds(self) -> float:
        """Time in which an empty bucket becomes full."""
        return self.size / self.per_second
