"""What models cost: by model, by role and by objective."""

from __future__ import annotations

from collections.abc import Mapping

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.errors import InvalidInput
from fireswarm.swarm.records.budgets import DAY, SESSION, read_scope_limits
from fireswarm.swarm.records.spending import read_spending, sort_by_cost

READ_RUNS = 500
KEPT_SECONDS = 60.0
SHOWN = 20
LIMIT_SECONDS = 10.0


async def show(visit: Visit) -> Shown:
    """Make the page."""
    store = visit.swarm.parts.store
    spending = await visit.console.feed.remember("spend", KEPT_SECONDS, lambda: read_spending(store, READ_RUNS))
    tables = {
        "model": [(name, name, total.fields()) for name, total in sort_by_cost(spending.by_model)],
        "role": [(name, name, total.fields()) for name, total in sort_by_cost(spending.by_role)],
        "objective": [
            (name, spending.objectives.get(name) or name, total.fields())
            for name, total in sort_by_cost(spending.by_objective)[:SHOWN]
        ],
    }
    parts, session = visit.swarm.parts, visit.swarm.session
    limits = await visit.console.feed.remember(
        "limits", LIMIT_SECONDS, lambda: read_scope_limits(store, parts.clock, session, parts.settings.budget)
    )
    known = {limit.scope: (round(100 * limit.left), str(limit)) for limit in limits}
    values = {"tables": tables, "spending": spending, "total": spending.total.fields(), "session": session}
    return Shown("spend.html", {**values, "scopes": {scope: known.get(scope) for scope in (SESSION, DAY)}})


async def set_budget(visit: Visit) -> Goto:
    """Set the budget of the session or of the day. Raises InvalidInput."""
    scope = visit.form.get("scope", "")
    if scope not in (SESSION, DAY):
        raise InvalidInput("the form does not say whose budget it is: load the page again")
    await visit.swarm.budget(scope, usd=read_usd(visit.form))
    return Goto("/spend", "budget")


def read_usd(form: Mapping[str, str]) -> float:
    """Return the amount of a form. Raises InvalidInput."""
    try:
        return float(form.get("usd", ""))
    except ValueError:
        raise InvalidInput("give the budget in USD as a number") from None
