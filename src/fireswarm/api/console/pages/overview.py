"""The first page: what needs a person, how many tasks are where, who works on what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fireswarm.api.console.pages.agents import find_living
from fireswarm.api.console.pages.inbox import find_waiting
from fireswarm.api.console.visit import Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.contracts.swarm.task import GIVEN_UP, TaskStatus
from fireswarm.storage.documents import queries

LATEST_SECONDS, COUNT_SECONDS, DAY_SECONDS = 3.0, 10.0, 60.0
"""How long the latest tasks, counts, and counts of whole days are kept: each costs reads, once for all open pages."""

MAX_AGE_SECONDS = 10**9

SHOWN = 10

GAVE_UP = "gave up"
"""Name of the count of blocked tasks that were given up."""

GONE_SHOWN = timedelta(minutes=5)
"""How long an agent that has died is shown here; the page of agents shows it for an hour."""


async def show(visit: Visit) -> Shown:
    """Make the page."""
    swarm, feed = visit.swarm, visit.console.feed
    now = swarm.parts.clock.now()
    counts = await feed.remember("counts", COUNT_SECONDS, lambda: _count(swarm))
    days = await feed.remember("days", DAY_SECONDS, lambda: _count_days(swarm, now))
    gave_up = await feed.remember("gave up", DAY_SECONDS, lambda: _count_gave_up(swarm))
    living = await feed.remember("agents", COUNT_SECONDS, lambda: find_living(swarm))
    oldest: dict[str, Mapping[str, Any]] = {}
    for agent in living:
        if agent.queue_hints.queued:
            hints = agent.queue_hints
            age = hints.oldest_seconds if 0 <= hints.oldest_seconds < MAX_AGE_SECONDS else 0.0  # a hand may write any
            oldest[agent.role] = {"queued": hints.queued, "since": now - timedelta(seconds=age)}
    waiting = await find_waiting(visit.console)
    latest = await feed.remember("latest", LATEST_SECONDS, lambda: swarm.tasks(limit=SHOWN))
    values = {
        "waiting_tasks": waiting.tasks[:SHOWN],
        "more_waiting": max(0, len(waiting.tasks) - SHOWN),
        "counts": counts | {GAVE_UP: gave_up},
        "days": days,
        "agents": [agent for agent in living if agent.lives_at(now) or _has_died_lately(agent, now)],
        "states": {agent.agent_id: agent.state_at(now) for agent in living},
        "oldest": dict(sorted(oldest.items())),
        "latest": latest,
        "unreadable": waiting.unreadable,
    }
    return Shown("overview.html", values)


def _has_died_lately(agent: AgentStatus, now: datetime) -> bool:
    """Return True for an agent that died lately, and did not stop."""
    return agent.status is not AgentState.STOPPED and now - agent.created_at < GONE_SHOWN


async def _count(swarm: Swarm) -> dict[str, int]:
    store = swarm.parts.store
    return {status.value: await store.count(queries.counted_with_status(status.value)) for status in TaskStatus}


async def _count_gave_up(swarm: Swarm) -> int:
    """Count the blocked tasks that were given up: a count for each reason, so less often than the others."""
    return sum([await swarm.parts.store.count(queries.blocked_by(reason.value)) for reason in sorted(GIVEN_UP)])


async def _count_days(swarm: Swarm, now: datetime) -> dict[str, dict[str, int]]:
    """Count the tasks that ended today and yesterday (UTC), and those that were given up and still are."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": (today, now + timedelta(days=1)), "yesterday": (today - timedelta(days=1), today)}
    return {
        day: {
            status: await swarm.parts.store.count(queries.changed_between(status, since, before))
            for status in (TaskStatus.DONE.value, TaskStatus.CANCELED.value)
        }
        | {"gave_up": await _count_gave_up_between(swarm, since, before)}
        for day, (since, before) in days.items()
    }


async def _count_gave_up_between(swarm: Swarm, since: datetime, before: datetime) -> int:
    """Count the tasks that were given up in a time and wait for a person since then."""
    count = swarm.parts.store.count
    return sum([await count(queries.blocked_between(reason.value, since, before)) for reason in sorted(GIVEN_UP)])
