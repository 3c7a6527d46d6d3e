"""What models cost, by day, model, role and objective; budgets; and the operations of the store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fireswarm.api.console.pages.agents import keep_living
from fireswarm.api.console.pages.spans import span_of
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.errors import InvalidInput
from fireswarm.llm.budget import Limit, Spend
from fireswarm.llm.spend import StoreLedger
from fireswarm.storage.documents import queries
from fireswarm.swarm.records.budgets import DAY, SESSION, read_scope_limits
from fireswarm.swarm.records.spending import (
    FREE_PER_DAY,
    Spending,
    estimate_day,
    price_operations,
    read_spending,
    sort_by_cost,
    sum_operations,
)

READ_RUNS = 500
KEPT_SECONDS = 60.0
SHOWN = 20
LIMIT_SECONDS = 10.0

PERIODS = {"today": "today", "yesterday": "yesterday", "7d": "the last 7 days", "": "any time"}
"""Periods that the page offers (days of UTC), in words."""

ROUNDING = 1e-9
"""Error of a share of a budget: nothing is called whole of which something is spent."""

MIN_SHARE = 1 / 24
"""Share of the day after which its spend says something of the whole."""


async def show(visit: Visit) -> Shown:
    """Make the page. Raises InvalidInput for an unknown period."""
    within, only = visit.query.get("within", ""), visit.query.get("session", "")
    if within not in PERIODS:
        raise InvalidInput(f"unknown period {within!r}; known: {', '.join(filter(None, PERIODS))}")
    parts, feed = visit.swarm.parts, visit.console.feed
    now = parts.clock.now()
    spending = await feed.remember(
        ("spend", within, only),
        KEPT_SECONDS,
        lambda: read_spending(parts.store, READ_RUNS, only or None, span_of(within, now)),
    )
    agents = await keep_living(visit.console)
    operations = sum_operations(agents)
    day = estimate_day(agents)
    values = {
        "tables": _tables(spending),
        "spending": spending,
        "total": spending.total.fields(),
        "budgets": await read_budgets(visit, always=True),
        "forecast": await _forecast(visit, now),
        "periods": PERIODS,
        "within": within,
        "only": only,
        "session": visit.swarm.session,
        "sessions": sorted(spending.sessions | {visit.swarm.session} | ({only} if only else set())),
        "shown": SHOWN,
        "objectives": len(spending.by_objective),
        "operations": operations,
        "day": day,
        "day_usd": price_operations(day),
        "free": FREE_PER_DAY,
    }
    return Shown("spend.html", values)


def _tables(spending: Spending) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Return the rows of each table: a name, the text that is shown, and the sums."""
    named = {"model": spending.by_model, "role": spending.by_role}
    tables = {title: [(name, name, sums.fields()) for name, sums in sort_by_cost(by)] for title, by in named.items()}
    tables["day"] = [(name, name, sums.fields()) for name, sums in sorted(spending.by_day.items(), reverse=True)]
    tables["objective"] = [
        (name, spending.objectives.get(name) or name, total.fields())
        for name, total in sort_by_cost(spending.by_objective)[:SHOWN]
    ]
    return tables


async def read_budgets(visit: Visit, *, always: bool = False) -> list[dict[str, str]]:
    """Return the budgets of the session and of this day in words; with *always*, also those that are not set."""
    parts, session = visit.swarm.parts, visit.swarm.session
    limits = await visit.console.feed.keep(
        "limits", LIMIT_SECONDS, lambda: read_scope_limits(parts.store, parts.clock, session, parts.settings.budget)
    )
    known = {limit.scope: describe_limit(limit) for limit in limits}
    return [{"scope": scope, "told": known.get(scope, "none")} for scope in (SESSION, DAY) if always or scope in known]


def describe_limit(limit: Limit) -> str:
    """Return in words what is left of a budget, and by how much it is overspent."""
    told = f"{math.floor(100 * limit.left + ROUNDING)} % left, {limit}"
    return f"{told}; {limit.overrun}" if limit.overrun else told


async def _forecast(visit: Visit, now: datetime) -> tuple[float, float] | None:
    """Return what this day has cost, and what it costs at its end at this rate, in USD; None before there is a rate."""
    parts = visit.swarm.parts
    ledger = StoreLedger(parts.store, parts.clock, visit.swarm.session, "")
    spent: Spend = await visit.console.feed.keep("day", KEPT_SECONDS, ledger.day)
    share = (now - now.replace(hour=0, minute=0, second=0, microsecond=0)) / timedelta(days=1)
    return (spent.usd, spent.usd / share) if spent.usd and share >= MIN_SHARE else None


async def set_budget(visit: Visit) -> Goto:
    """Set a budget of the session or day; if tasks stopped for a budget, go to their list. Raises InvalidInput."""
    scope = visit.form.get("scope", "")
    if scope not in (SESSION, DAY):
        raise InvalidInput("the form does not say whose budget it is: load the page again")
    await visit.swarm.budget(scope, usd=read_usd(visit.form))
    stopped = StatusReason.BUDGET_EXCEEDED.value
    if await visit.swarm.parts.store.count(queries.blocked_by(stopped)):
        return Goto(f"/tasks?status=blocked&reason={stopped}", "budget_stopped")
    return Goto("/spend", "budget")


def read_usd(form: Mapping[str, str]) -> float:
    """Return the amount of a form. Raises InvalidInput."""
    try:
        usd = float(form.get("usd", ""))
    except ValueError:
        raise InvalidInput("give the budget in USD as a number") from None
    if not 0 < usd < math.inf:
        raise InvalidInput("give a budget greater than 0")
    return usd
