"""The first page: what needs a person, how many tasks are where, what was spent, who works on what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fireswarm.api.console.pages.agents import keep_living
from fireswarm.api.console.pages.inbox import find_waiting
from fireswarm.api.console.pages.spend import read_budgets
from fireswarm.api.console.visit import Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.status import AgentState, AgentStatus, see_agents
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.storage.documents import queries

LATEST_SECONDS, COUNT_SECONDS, DAY_SECONDS = 3.0, 10.0, 60.0
"""How long the latest tasks, counts, and counts of whole days are kept: each costs reads, once for all open pages."""

MAX_AGE_SECONDS = 10**9

SHOWN = 10

GONE_SHOWN = timedelta(minutes=5)
"""How long an agent that has died is shown here; the page of agents shows it for an hour."""


async def show(visit: Visit) -> Shown:
    """Make the page."""
    swarm, feed = visit.swarm, visit.console.feed
    now = swarm.parts.clock.now()
    counts = await feed.keep("counts", COUNT_SECONDS, lambda: _count(swarm))
    days = await feed.keep("days", DAY_SECONDS, lambda: _count_days(swarm, now))
    living = await keep_living(visit.console)
    oldest: dict[str, Mapping[str, Any]] = {}
    for agent in living:
        if agent.queue_hints.queued:
            hints = agent.queue_hints
            age = hints.oldest_seconds if 0 <= hints.oldest_seconds < MAX_AGE_SECONDS else 0.0  # a hand may write any
            oldest[agent.role] = {"queued": hints.queued, "since": now - timedelta(seconds=age)}
    waiting = await find_waiting(visit.console)
    gave_up = sum(task.given_up for task in waiting.tasks)
    latest = feed.newest
    if latest is None:
        latest = await feed.remember("latest", LATEST_SECONDS, lambda: swarm.tasks(limit=SHOWN))
    values = {
        "waiting_tasks": waiting.tasks[:SHOWN],
        "more_waiting": max(0, len(waiting.tasks) - SHOWN),
        "counts": counts,
        "gave_up": gave_up,
        "days": days,
        "budgets": await read_budgets(visit),
        "agents": [seen for seen in see_agents(living, now) if _is_shown(seen.status, now)],
        "oldest": dict(sorted(oldest.items())),
        "latest": latest,
        "unreadable": waiting.unreadable,
    }
    return Shown("overview.html", values)


def _is_shown(agent: AgentStatus, now: datetime) -> bool:
    """Return True for an agent that lives, or that died lately and did not stop."""
    return agent.lives_at(now) or (agent.status is not AgentState.STOPPED and now - agent.created_at < GONE_SHOWN)


async def _count(swarm: Swarm) -> dict[str, int]:
    store = swarm.parts.store
    return {status.value: await store.count(queries.with_status(status.value)) for status in TaskStatus}


async def _count_days(swarm: Swarm, now: datetime) -> dict[str, dict[str, Any]]:
    """Count the tasks that ended, and the runs that failed, today and yesterday (UTC)."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    count = swarm.parts.store.count
    return {
        name: {
            "day": since.date().isoformat(),
            "done": await count(queries.changed_between("done", since, since + timedelta(days=1))),
            "canceled": await count(queries.changed_between("canceled", since, since + timedelta(days=1))),
            "failed": await count(queries.failed_runs(since, since + timedelta(days=1))),
        }
        for name, since in (("today", today), ("yesterday", today - timedelta(days=1)))
    }
