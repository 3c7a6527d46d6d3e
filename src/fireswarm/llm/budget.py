"""Cost of model calls, and budget checks. Pure, except for the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget of one scope, such as a task or a session, and what was spent of it; None means no limit.

    ``raised_by`` says how the operator raises it.
    """

    scope: str
    spent: Spend
    tokens: int | None = None
    usd: float | None = None
    raised_by: str = ""

    @property
    def left(self) -> float:
        """Smallest share that is left, of tokens or USD, from 0 to 1."""
        shares = [1 - self.spent.tokens / self.tokens] if self.tokens else []
        shares += [1 - self.spent.usd / self.usd] if self.usd else []
        return max(0.0, min(shares, default=1.0))

    @property
    def overrun(self) -> str:
        """What was spent beyond the budget, in words; "" for nothing: a call is counted when it has ended."""
        amounts: list[str] = []
        if self.tokens is not None and self.spent.tokens > self.tokens:
            amounts.append(f"{self.spent.tokens - self.tokens:,} tokens")
        if self.usd is not None and self.spent.usd > self.usd:
            amounts.append(f"{self.spent.usd - self.usd:.4f} USD")
        return f"{' and '.join(amounts)} more than that spent" if amounts else ""

    def __str__(self) -> str:
        """Return what is left, in words."""
        amounts: list[str] = []
        if self.tokens is not None:
            amounts.append(f"{max(0, self.tokens - self.spent.tokens):,} of {self.tokens:,} tokens")
        if self.usd is not None:
            amounts.append(f"{max(0.0, self.usd - self.spent.usd):.4f} of {self.usd:.4f} USD")
        return f"{' and '.join(amounts)} of the {self.scope}"


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

    async def limits(self, budget: BudgetSettings, task: Spend, *, fresh: bool = False) -> Sequence[Limit]:
        """Return the budgets that hold for a run that has spent *task*; with *fresh*, also those just raised."""
        ...


async def limits_in_settings(budget: BudgetSettings, task: Spend, ledger: Ledger | None) -> list[Limit]:
    """Return the budgets of the settings. The ledger is read only for those that are set."""
    limits = [Limit("task", task, budget.task_tokens, budget.task_usd)]
    if ledger is not None and (budget.session_tokens or budget.session_usd):
        limits.append(Limit("session", await ledger.session(), budget.session_tokens, budget.session_usd))
    if ledger is not None and (budget.day_tokens or budget.day_usd):
        limits.append(Limit("day", await ledger.day(), budget.day_tokens, budget.day_usd))
    return [limit for limit in limits if limit.tokens is not None or limit.usd is not None]


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

    async def limits(self, task: Spend, ledger: Ledger | None, *, fresh: bool = False) -> Sequence[Limit]:
        """Return the budgets that hold for a run that has spent *task*."""
        if ledger is None:
            return await limits_in_settings(self.budget, task, None)
        return await ledger.limits(self.budget, task, fresh=fresh)

    async def check(self, prompt_tokens: int, task: Spend, ledger: Ledger | None) -> None:
        """Raise BudgetExceeded if the next call's prompt alone would exceed a limit, also one that was just raised."""
        faults = self._faults(prompt_tokens, await self.limits(task, ledger))
        if faults and ledger is not None:
            faults = self._faults(prompt_tokens, await self.limits(task, ledger, fresh=True))
        if faults:
            raise BudgetExceeded(faults[0])

    def _faults(self, prompt_tokens: int, limits: Sequence[Limit]) -> list[str]:
        return [fault for limit in limits if (fault := self._fault(limit, prompt_tokens))]

    def _fault(self, limit: Limit, prompt_tokens: int) -> str:
        """Return why the next call would exceed *limit*, and what to do; "" if it would not."""
        scope, spent, tokens, usd = limit.scope, limit.spent, limit.tokens, limit.usd
        if tokens is not None and spent.tokens + prompt_tokens > tokens:
            return (
                f"the next call would bring the {scope} to {spent.tokens + prompt_tokens:,} tokens; its budget is "
                f"{tokens:,}: {limit.raised_by or f'raise budget.{scope}_tokens'} and retry the task, or cancel it"
            )
        if usd is None:
            return ""
        price = self.price
        if price is None:
            return (
                f"budget.{scope}_usd cannot be enforced without a price for {self.model}: "
                f"set budget.prices.{self.model}, or a budget in tokens"
            )
        expected = spent.usd + prompt_tokens * price.get("input", 0.0) / 1_000_000
        if expected > usd or spent.usd >= usd:
            return (
                f"the next call would bring the {scope} to {expected:.4f} USD; its budget is {usd:.4f}: "
                f"{limit.raised_by or f'raise budget.{scope}_usd'} and retry the task, or cancel it"
            )
        return ""
