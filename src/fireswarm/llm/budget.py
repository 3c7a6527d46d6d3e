"""Cost of model calls, and budget checks. Pure, except for the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fireswarm.contracts.llm.chat import TokenUsage
from fireswarm.errors import BudgetExceeded
from fireswarm.settings.agent import BudgetSettings
from fireswarm.settings.model_limits import price_of


class Spend:
    """Usage so far: calls, tokens, USD. ``unpriced`` counts calls of models without a price."""

    __slots__ = ("calls", "tokens", "unpriced", "usd")

    def __init__(self, calls: int = 0, tokens: int = 0, usd: float = 0.0, unpriced: int = 0) -> None:
        """Start from known usage."""
        self.calls, self.tokens, self.usd, self.unpriced = calls, tokens, usd, unpriced

    def add(self, other: Spend) -> None:
        """Add *other* to this usage."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.usd += other.usd
        self.unpriced += other.unpriced

    @classmethod
    def of_call(cls, tokens: int, usd: float | None) -> Spend:
        """Return the usage of one call; *usd* is None if the model has no price."""
        return cls(1, tokens, usd or 0.0, int(usd is None))

    def fields(self) -> dict[str, Any]:
        """Return the usage as fields of a document or event."""
        return {"calls": self.calls, "tokens": self.tokens, "usd": round(self.usd, 6), "unpriced_calls": self.unpriced}


class Ledger(Protocol):
    """Spending of the session and of the day, summed over all processes."""

    async def session(self) -> Spend:
        """Return the spending of the session."""
        ...

    async def day(self) -> Spend:
        """Return the spending of the day (UTC)."""
        ...

    async def add(self, spend: Spend) -> None:
        """Count one call."""
        ...


@dataclass(frozen=True, slots=True)
class Meter:
    """Prices and limits."""

    budget: BudgetSettings
    model: str

    @property
    def price(self) -> Mapping[str, float] | None:
        """USD per million tokens of the model, or None if unknown."""
        return price_of(self.model, self.budget.prices)

    def cost(self, usage: TokenUsage) -> float | None:
        """Return the USD of one call, or None without a price. Output tokens include thinking tokens."""
        price = self.price
        if price is None:
            return None
        return (
            usage.input_tokens * price.get("input", 0.0)
            + usage.output_tokens * price.get("output", 0.0)
            + usage.cached_tokens * price.get("cached", price.get("input", 0.0))
            + usage.cache_write_tokens * price.get("cache_write", price.get("input", 0.0))
        ) / 1_000_000

    async def check(self, prompt_tokens: int, task: Spend, ledger: Ledger | None) -> None:
        """Raise BudgetExceeded if the next call's prompt alone would exceed a limit."""
        budget = self.budget
        self._hold("task", task, budget.task_tokens, budget.task_usd, prompt_tokens)
        if ledger is None:
            return
        if budget.session_tokens or budget.session_usd:
            self._hold("session", await ledger.session(), budget.session_tokens, budget.session_usd, prompt_tokens)
        if budget.day_tokens or budget.day_usd:
            self._hold("day", await ledger.day(), budget.day_tokens, budget.day_usd, prompt_tokens)

    def _hold(self, scope: str, spent: Spend, tokens: int | None, usd: float | None, prompt_tokens: int) -> None:
        """Raise BudgetExceeded if the next call would exceed the limits of *scope*: task, session or day."""
        if tokens is not None and spent.tokens + prompt_tokens > tokens:
            raise BudgetExceeded(
                f"the next call would bring the {scope} to {spent.tokens + prompt_tokens:,} tokens; its budget is "
                f"{tokens:,}: raise budget.{scope}_tokens and retry the task, or cancel it"
            )
        if usd is None:
            return
        price = self.price
        if price is None:
            raise BudgetExceeded(
                f"budget.{scope}_usd cannot be enforced without a price for {self.model}: "
                f"set budget.prices.{self.model}, or a budget in tokens"
            )
        expected = spent.usd + prompt_tokens * price.get("input", 0.0) / 1_000_000
        if expected > usd or spent.usd >= usd:
            raise BudgetExceeded(
                f"the next call would bring the {scope} to {expected:.4f} USD; its budget is {usd:.4f}: "
                f"raise budget.{scope}_usd and retry the task, or cancel it"
            )
