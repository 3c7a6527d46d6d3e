"""Operations of the store that Firestore bills, by role: as counted by each agent, and at list prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fireswarm.contracts.swarm.status import AgentStatus

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
