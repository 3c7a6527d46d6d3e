"""The first page: what needs a person, how many tasks are where, what was spent, who works on what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fireswarm.api.console.pages.agents import describe_state, keep_living, keep_orders
from fireswarm.api.console.pages.inbox import find_waiting
from fireswarm.api.console.pages.spend import read_budgets
from fireswarm.api.console.visit import Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.status import AgentState, AgentStatus, see_agents
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot

LATEST_SECONDS, COUNT_SECONDS, DAY_SECONDS = 3.0, 10.0, 60.0
"""How long the latest tasks, counts, and counts of whole days are kept: each costs reads, once for all open pages."""

MAX_AGE_SECONDS = 10**9

SHOWN = 10

GONE_SHOWN = timedelta(minutes=5)
"""How long an agent that has died is shown here; the page of agents shows it for an hour."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The tasks that wait for a role, and since when the oldest does; ``is_idle`` if no process of the role lives."""

    queued: int
    since: datetime | None
    is_idle: bool = False


async def show(visit: Visit) -> Shown:
    """Make the page."""
    swarm, feed = visit.swarm, visit.console.feed
    now = swarm.parts.clock.now()
    counts = await feed.keep("counts", COUNT_SECONDS, lambda: _count(swarm))
    days = await feed.keep("days", DAY_SECONDS, lambda: _count_days(swarm, now))
    living = await keep_living(visit.console)
    orders = await keep_orders(visit.console)
    lives = [agent for agent in living if agent.lives_at(now)]
    queues = _find_queues(lives)
    if counts["queued"]:
        roles = swarm.parts.roles.keys() - {agent.role for agent in lives}
        kept = await feed.keep("queues", DAY_SECONDS, lambda: _read_queues(swarm, sorted(roles)))
        queues |= {role: queue for role, queue in kept.items() if role in roles}  # a process may live again
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
        "agents": [
            (seen, describe_state(seen, orders))
            for seen in see_agents(_with_leases(living, latest), now)
            if _is_shown(seen.status, now)
        ],
        "nobody_lives": not lives,
        "queues": dict(sorted(queues.items())),
        "paused": {order.role for order in orders if order.paused and not order.subject},
        "latest": latest,
        "unreadable": waiting.unreadable,
    }
    return Shown("overview.html", values)


def _with_leases(agents: Iterable[AgentStatus], latest: Sequence[Task]) -> list[AgentStatus]:
    """Return the agents with what they hold by the latest tasks, which are newer than what is kept of the agents."""
    owners = {task.task_id: task.lease.owner_agent_id if task.lease else "" for task in latest}
    updated: list[AgentStatus] = []
    for agent in agents:
        held = [
            task_id for task_id in agent.queue_hints.holding if owners.get(task_id, agent.agent_id) == agent.agent_id
        ]
        held += [task_id for task_id, owner in owners.items() if owner == agent.agent_id and task_id not in held]
        updated.append(agent.with_held(held) if held != list(agent.queue_hints.holding) else agent)
    return updated


def _find_queues(living: Iterable[AgentStatus]) -> dict[str, Queue]:
    """Return the queues as the newest heartbeat of each role tells them, without the empty ones."""
    newest = {agent.role: agent for agent in sorted(living, key=lambda agent: agent.created_at)}
    queues: dict[str, Queue] = {}
    for role, agent in newest.items():
        hints = agent.queue_hints
        age = hints.oldest_seconds if 0 <= hints.oldest_seconds < MAX_AGE_SECONDS else 0.0  # a hand may write any
        if hints.queued:
            queues[role] = Queue(hints.queued, agent.created_at - timedelta(seconds=age))
    return queues


async def _read_queues(swarm: Swarm, roles: Iterable[str]) -> dict[str, Queue]:
    """Read the queues of roles of which no process lives to tell them."""
    store = swarm.parts.store
    queues: dict[str, Queue] = {}
    for role in roles:
        if queued := await store.count(queries.queued_tasks(role)):
            oldest = parse_readable(await store.query(queries.oldest_queued(role)), parse_task_snapshot)
            queues[role] = Queue(queued, oldest[0].created_at if oldest else None, is_idle=True)
    return queues


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
