"""What models cost: by model, by role and by objective."""

from __future__ import annotations

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.swarm.records.spending import read_spending, sort_by_cost

READ_RUNS = 500
KEPT_SECONDS = 60.0
SHOWN = 20


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
    return Shown("spend.html", {"tables": tables, "spending": spending, "total": spending.total.fields()})
