"""Budgets that an operator raised: of tasks and objectives on their documents, others in ``mcp_memory``.

A raised budget applies at once: before a call is refused, the budgets are read again.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.ports import Clock, Merge, Store, Write
from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.llm.budget import Ledger, Limit, Spend
from fireswarm.llm.spend import KEEP, OTHERS_FRESH_SECONDS, StoreLedger
from fireswarm.settings.agent import BudgetSettings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MEMORY, task_path

LOW = 0.2
"""Share of a budget that is left when its receivers are told of it."""

SESSION, DAY = "session", "day"
"""Scopes that `swarm budget` takes in place of a task."""

Amounts = Mapping[str, Any]
"""A stored budget: ``tokens``, ``usd`` or both."""


def scope_path(scope: str, session: str, now: datetime) -> str:
    """Return the path of the document with the budget of the session, or of this day."""
    return f"{MEMORY}/budget-day-{now.date().isoformat()}" if scope == DAY else f"{MEMORY}/budget-session-{session}"


def scope_write(scope: str, session: str, now: datetime, amounts: Amounts) -> Write:
    """Return the write that sets the budget of a session or a day."""
    fields = {"type": "budget", "session_hash": session, "expires_at": now + KEEP, **amounts}
    return Merge(scope_path(scope, session, now), fields)


def check_amounts(tokens: int | None, usd: float | None) -> dict[str, Any]:
    """Return the given amounts. Raises InvalidInput without one, and for one that is not greater than 0."""
    amounts = {name: value for name, value in (("tokens", tokens), ("usd", usd)) if value is not None}
    if not amounts or min(amounts.values()) <= 0:
        raise InvalidInput("give a budget greater than 0: --usd, --tokens or both")
    return amounts


@dataclass(slots=True)
class TaskLedger:
    """The ledger of one turn: the spending of its session, and the budgets that hold for its task.

    ``report`` is called with each budget that is nearly spent.

    ``usage`` is what the turn's own run, ``run_id``, has spent. A budget of the objective replaces the settings' budget
    of a task, also for every task below it.
    """

    ledger: Ledger
    store: Store
    clock: Clock
    task: Task
    run_id: str
    usage: Mapping[str, Any]
    report: Callable[[Limit], Awaitable[None]] | None = None
    _reported: set[str] = field(default_factory=set[str])
    _raised: dict[str, Amounts] | None = None
    _others: tuple[datetime, Spend] | None = field(default=None)

    async def session(self) -> Spend:
        """Return the spending of the session."""
        return await self.ledger.session()

    async def day(self) -> Spend:
        """Return the spending of the day (UTC)."""
        return await self.ledger.day()

    async def add(self, spend: Spend) -> None:
        """Count one call."""
        await self.ledger.add(spend)

    async def limits(self, budget: BudgetSettings, task: Spend, *, fresh: bool = False) -> Sequence[Limit]:
        """Return the budgets of the settings, with those that an operator raised."""
        if self._raised is None or fresh:
            self._raised = await self._read()
        raised, limits = self._raised, list[Limit]()
        if own := raised.get("task"):
            limits.append(_limit("task", task, own, self.task.task_id))
        elif whole := raised.get("objective"):
            limits.append(_limit("objective", await self._spent_by_objective(), whole, self._root))
        elif budget.task_tokens or budget.task_usd:
            amounts = {"tokens": budget.task_tokens, "usd": budget.task_usd}
            limits.append(_limit("task", task, amounts, self.task.task_id, "budget.task"))
        limits += await _limits_of_scopes(self.ledger, budget, raised)
        await self._report_low(limits)
        return limits

    async def _report_low(self, limits: Sequence[Limit]) -> None:
        """Report each budget that is nearly spent, once a turn."""
        for limit in limits:
            if self.report is not None and limit.left <= LOW and limit.scope not in self._reported:
                self._reported.add(limit.scope)
                await self.report(limit)

    @property
    def _root(self) -> str:
        return self.task.task_id if self.task.parent_task_id is None else self.task.trace.chain_id

    async def _read(self) -> dict[str, Amounts]:
        """Read the raised budgets by scope: three documents, and one more for a task below another."""
        session, now = self.task.session_hash, self.clock.now()
        paths = {
            "objective": task_path(self._root),
            "task": task_path(self.task.task_id),
            SESSION: scope_path(SESSION, session, now),
            DAY: scope_path(DAY, session, now),
        }
        if paths["task"] == paths["objective"]:
            del paths["task"]
        read = {item.path: item.data or {} for item in await self.store.get_many(list(paths.values()))}
        found = {scope: _amounts(scope, read.get(path, {})) for scope, path in paths.items()}
        return {scope: amounts for scope, amounts in found.items() if amounts}

    async def _spent_by_objective(self) -> Spend:
        """Sum the runs of the objective; those of other turns as of ten seconds ago."""
        now = self.clock.now()
        if self._others is None or (now - self._others[0]).total_seconds() >= OTHERS_FRESH_SECONDS:
            others = Spend()
            for run in await self.store.query(queries.runs_of(self.task.trace.chain_id)):
                data = run.data or {}
                if run.id != self.run_id:
                    others.add(_spend_of(data.get("usage") or {}))
            self._others = now, others
        total = Spend()
        total.add(self._others[1])
        total.add(_spend_of(self.usage))
        return total


async def read_scope_limits(store: Store, clock: Clock, session: str, budget: BudgetSettings) -> list[Limit]:
    """Return the budgets of a session and of this day, raised ones too, with what is spent."""
    paths = {scope: scope_path(scope, session, clock.now()) for scope in (SESSION, DAY)}
    read = {item.path: item.data or {} for item in await store.get_many(list(paths.values()))}
    raised = {scope: _amounts(scope, read.get(path, {})) for scope, path in paths.items()}
    return await _limits_of_scopes(StoreLedger(store, clock, session, ""), budget, raised)


async def read_limits(
    store: Store, clock: Clock, task: Task, runs: Sequence[RunDocument], budget: BudgetSettings
) -> Sequence[Limit]:
    """Return the budgets that hold for a task, with what is spent; *runs* are its runs."""
    spent = Spend()
    for run in runs:
        spent.add(_spend_of(run.usage))
    ledger = TaskLedger(StoreLedger(store, clock, task.session_hash, ""), store, clock, task, "", {})
    return await ledger.limits(budget, spent)


async def _limits_of_scopes(ledger: Ledger, budget: BudgetSettings, raised: Mapping[str, Amounts]) -> list[Limit]:
    limits: list[Limit] = []
    for scope, read, tokens, usd in (
        (SESSION, ledger.session, budget.session_tokens, budget.session_usd),
        (DAY, ledger.day, budget.day_tokens, budget.day_usd),
    ):
        amounts = {"tokens": tokens, "usd": usd} | dict(raised.get(scope, {}))
        if any(amounts.values()):
            limits.append(_limit(scope, await read(), amounts, scope, f"budget.{scope}"))
    return limits


def _amounts(scope: str, data: Mapping[str, Any]) -> Amounts:
    """Return the budget in a document; a malformed one, written by hand, counts as none."""
    given = data.get("budget") if scope in ("task", "objective") else data
    if not isinstance(given, Mapping):
        return {}
    read: dict[str, Any] = {name: given.get(name) for name in ("tokens", "usd")}
    return {
        name: value
        for name, value in read.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    }


def _limit(scope: str, spent: Spend, amounts: Amounts, target: str, key: str = "") -> Limit:
    """Return a limit, and how to raise it."""
    unit = "tokens" if amounts.get("tokens") else "usd"
    command = command_line("swarm", "budget", shown_id(target), f"--{unit}")
    also = f" (or `{key}_{unit}`)" if key else ""
    return Limit(scope, spent, amounts.get("tokens"), amounts.get("usd"), f"raise it with `{command} N`{also}")


def _spend_of(usage: Mapping[str, Any]) -> Spend:
    def number(name: str) -> float:
        value = usage.get(name)
        return value if isinstance(value, (int, float)) and math.isfinite(value) else 0

    return Spend(int(number("calls")), int(number("tokens")), float(number("usd")), int(number("unpriced_calls")))
