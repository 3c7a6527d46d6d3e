"""Spend on models, summed over runs by objective, role, model and day; and operations that Firestore bills, by role.

A run's document counts each real call of that run once, even if the run was resumed or replayed. A sum over runs is
therefore the amount paid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.ports import Store
from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.status import AgentStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS, task_path
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot

COUNTS = (
    "calls",
    "tokens",
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "thinking_tokens",
    "usd",
    "unpriced_calls",
)
"""Fields that are summed. ``output_tokens`` include thinking; ``input_tokens`` are only those at full price."""

MAX_NAMED_OBJECTIVES = 20
"""Maximum number of objectives whose text is read, the most expensive first; each costs one billed read."""


class Total:
    """A sum of the usage of runs."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = dict.fromkeys(COUNTS, 0)

    def add(self, usage: Mapping[str, Any]) -> None:
        """Add the usage of one run."""
        for name in COUNTS:
            value = usage.get(name)
            if isinstance(value, (int, float)) and math.isfinite(value):
                self.counts[name] += value

    def fields(self) -> dict[str, Any]:
        """Return the sums as JSON fields."""
        return {**self.counts, "usd": round(self.counts["usd"], 6)}


@dataclass(slots=True)
class Spending:
    """Sums of the newest runs. ``more`` is True if there are older runs that were not read."""

    runs: int
    more: bool
    total: Total = field(default_factory=Total)
    by_objective: dict[str, Total] = field(default_factory=dict)
    by_role: dict[str, Total] = field(default_factory=dict)
    by_model: dict[str, Total] = field(default_factory=dict)
    by_day: dict[str, Total] = field(default_factory=dict)
    objectives: dict[str, str] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)

    def add(self, run: RunDocument) -> None:
        """Add one run. A run without model calls adds nothing."""
        self.sessions.add(run.session_hash)
        if not run.usage.get("calls"):
            return
        model = f"{run.usage.get('provider', '?')} {run.usage.get('model', '?')}"
        named = (
            (self.by_objective, run.chain_id),
            (self.by_role, run.role),
            (self.by_model, model),
            (self.by_day, run.started_at.date().isoformat()),
        )
        for sums, name in named:
            sums.setdefault(name, Total()).add(run.usage)
        self.total.add(run.usage)

    def fields(self) -> dict[str, Any]:
        """Return all sums as JSON fields."""
        return {
            "runs": self.runs,
            "more_runs": self.more,
            "total": self.total.fields(),
            "by_objective": [
                {"chain_id": name, "objective": self.objectives.get(name, ""), **total.fields()}
                for name, total in sort_by_cost(self.by_objective)
            ],
            "by_role": {name: total.fields() for name, total in sort_by_cost(self.by_role)},
            "by_model": {name: total.fields() for name, total in sort_by_cost(self.by_model)},
        }


def sort_by_cost(sums: Mapping[str, Total]) -> list[tuple[str, Total]]:
    """Sort by cost, highest first; without prices, by tokens."""
    return sorted(sums.items(), key=lambda item: (-item[1].counts["usd"], -item[1].counts["tokens"], item[0]))


async def read_spending(
    store: Store, limit: int, session: str | None = None, span: queries.Span = (None, None)
) -> Spending:
    """Sum the newest *limit* runs, of all sessions or of *session*, that began within *span*."""
    query = queries.page(RUNS, "started_at", limit + 1, None, span, session_hash=session)
    snapshots = await store.query(query)
    spending = sum_runs(parse_readable(snapshots[:limit], parse_run_snapshot), more=len(snapshots) > limit)
    dearest = [name for name, _ in sort_by_cost(spending.by_objective)][:MAX_NAMED_OBJECTIVES]
    for task in await store.get_many([task_path(name) for name in dearest if is_document_id(name)]):
        spending.objectives[task.id] = str((task.data or {}).get("objective", ""))
    return spending


def sum_runs(runs: Iterable[RunDocument], *, more: bool = False) -> Spending:
    """Sum *runs*."""
    listed = list(runs)
    spending = Spending(len(listed), more)
    for run in listed:
        spending.add(run)
    return spending


USD_PER_100_000 = {"reads": (0.03, 0.06), "writes": (0.09, 0.18), "deletes": (0.01, 0.02)}
"""Firestore's list prices by region, lowest and highest (Google Cloud pricing page)."""

FREE_PER_DAY = {"reads": 50_000, "writes": 20_000, "deletes": 20_000}

MIN_RATE_SECONDS, DAY_SECONDS = 60.0, 86_400.0
"""An agent that lives shorter than the first says nothing of a day."""

UNIT = 100_000


def sum_operations(agents: Iterable[AgentStatus]) -> dict[str, Counter[str]]:
    """Return the operations of agents since their start, by role."""
    by_role: dict[str, Counter[str]] = {}
    for agent in agents:
        by_role.setdefault(agent.role, Counter(dict.fromkeys(FREE_PER_DAY, 0))).update(agent.usage)
    return by_role


def estimate_day(agents: Iterable[AgentStatus]) -> Counter[str]:
    """Return the operations of a whole day at the rate of *agents* since their start; idle ones show the idle cost."""
    day: Counter[str] = Counter(dict.fromkeys(FREE_PER_DAY, 0))
    for agent in agents:
        seconds = (agent.created_at - agent.started_at).total_seconds() if agent.started_at else 0.0
        if seconds >= MIN_RATE_SECONDS:
            day.update({kind: round(agent.usage.get(kind, 0) / seconds * DAY_SECONDS) for kind in FREE_PER_DAY})
    return day


def price_operations(usage: Mapping[str, int]) -> tuple[float, float]:
    """Return the list price in USD, in the cheapest and in the most expensive region, before the free quota."""
    low = sum(usage.get(kind, 0) / UNIT * prices[0] for kind, prices in USD_PER_100_000.items())
    high = sum(usage.get(kind, 0) / UNIT * prices[1] for kind, prices in USD_PER_100_000.items())
    return low, high
