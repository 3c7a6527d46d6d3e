"""``/metrics``: the state of the swarm for Prometheus, read from the store; and the figures of one role process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sized
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from fireswarm.api.routes.health import READY_SECONDS, can_read
from fireswarm.api.session import CurrentSession, Kept
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Store
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.llm.spend import StoreLedger
from fireswarm.settings.packaged import __version__
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot
from fireswarm.swarm.records.budgets import read_scope_limits

KEPT_SECONDS = 10.0
"""How long figures are kept: a look costs a read for each count, and one for each role process."""

RECENT = timedelta(hours=1)
"""Age of the heartbeats that are read: a process without one for longer is no longer counted."""

router = APIRouter(tags=["metrics"])


class _Found(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> Iterable[Metric]:
        """Return what was found."""
        return self._metrics


@router.get("/metrics", include_in_schema=False)
async def show_metrics(given: CurrentSession) -> PlainTextResponse:
    """Show all figures in Prometheus's text format."""
    text = await given.kept.remember("metrics", KEPT_SECONDS, lambda: _read(given.swarm))
    return PlainTextResponse(text, media_type=CONTENT_TYPE_LATEST)


async def _read(swarm: Swarm) -> bytes:
    began = time.perf_counter()
    metrics = [*await _of_tasks(swarm), *await _of_processes(swarm), *await _of_costs(swarm)]
    look = GaugeMetricFamily(
        "fireswarm_store_look_seconds",
        "Seconds that it took to read these figures from the store, one after another",
        time.perf_counter() - began,
    )
    return generate_latest(_Found([*metrics, look]))


async def _of_tasks(swarm: Swarm) -> list[Metric]:
    store, now = swarm.parts.store, swarm.parts.clock.now()
    tasks = GaugeMetricFamily("fireswarm_tasks", "Tasks by status", labels=["status"])
    for status in TaskStatus:
        tasks.add_metric([status.value], await store.count(queries.with_status(status.value)))
    blocked = GaugeMetricFamily("fireswarm_blocked_tasks", "Tasks that do not move, by reason", labels=["reason"])
    for reason in StatusReason:
        blocked.add_metric([reason.value], await store.count(queries.blocked_by(reason.value)))
    queued = GaugeMetricFamily("fireswarm_queued_tasks", "Tasks that wait for a role process", labels=["role"])
    oldest = GaugeMetricFamily(
        "fireswarm_oldest_queued_seconds", "Age of the oldest queued task, 0 without one", labels=["role"]
    )
    for role in sorted(swarm.parts.roles):
        queued.add_metric([role], await store.count(queries.queued_tasks(role)))
        first, _ = parse_all(await store.query(queries.oldest_queued(role)), parse_task_snapshot)
        age = max((now - task.created_at).total_seconds() for task in first) if first else 0.0
        oldest.add_metric([role], max(0.0, age))
    return [tasks, blocked, queued, oldest]


async def _of_processes(swarm: Swarm) -> list[Metric]:
    now = swarm.parts.clock.now()
    processes = GaugeMetricFamily("fireswarm_role_processes", "Role processes by state", labels=["role", "state"])
    living = GaugeMetricFamily("fireswarm_living_role_processes", "Role processes that are alive", labels=["role"])
    beat = GaugeMetricFamily(
        "fireswarm_heartbeat_age_seconds", "Seconds since the newest heartbeat of a role", labels=["role"]
    )
    found = await swarm.parts.heartbeats.read_reported(since=now - RECENT)
    for (role, state), number in sorted(Counter((each.role, each.state_at(now)) for each in found).items()):
        processes.add_metric([role, state], number)
    for role in sorted({*swarm.parts.roles, *(each.role for each in found)}):
        own = [each for each in found if each.role == role]
        living.add_metric([role], sum(each.lives_at(now) for each in own))
        if own:
            beat.add_metric([role], max(0.0, min((now - each.created_at).total_seconds() for each in own)))
    return [processes, living, beat]


async def _of_costs(swarm: Swarm) -> list[Metric]:
    parts = swarm.parts
    spent = await StoreLedger(parts.store, parts.clock, swarm.session, "").day()
    budgets = GaugeMetricFamily(
        "fireswarm_budget_spent_ratio", "Spent share of a budget, from 0 to 1; nothing without one", labels=["scope"]
    )
    for limit in await read_scope_limits(parts.store, parts.clock, swarm.session, parts.settings.budget):
        budgets.add_metric([limit.scope], 1 - limit.left)
    version = GaugeMetricFamily("fireswarm_version", "1, with the version as label", labels=["version"])
    version.add_metric([__version__], 1)
    operations = CounterMetricFamily(
        "fireswarm_store_operations",
        "Billed operations of this API process on the store",
        labels=["kind"],
    )
    for kind in ("reads", "writes", "deletes"):
        operations.add_metric([kind], getattr(parts.store.usage, kind))
    return [
        GaugeMetricFamily("fireswarm_model_calls_today", "Model calls of the day (UTC)", spent.calls),
        GaugeMetricFamily("fireswarm_model_tokens_today", "Tokens of the day (UTC)", spent.tokens),
        GaugeMetricFamily("fireswarm_model_usd_today", "US dollars of the day (UTC), of priced calls", spent.usd),
        budgets,
        operations,
        version,
    ]


class Working(Protocol):
    """What a role process tells about itself: claims won and lost, turns ended, unexpected errors, tasks it holds."""

    settled: int
    stopping: bool

    @property
    def held(self) -> Sized:
        """The tasks that it holds."""
        ...

    @property
    def faults(self) -> int:
        """Number of unexpected errors."""
        ...

    @property
    def contention(self) -> tuple[int, int]:
        """Claims won and lost so far."""
        ...


@dataclass(slots=True)
class ProcessHealth:
    """The application of one role process, for its orchestrator: without authentication, and with numbers only.

    Without its ``worker``, the process has not begun to work.
    """

    store: Store
    worker: Working | None = None
    kept: Kept = field(default_factory=Kept)

    def make_application(self) -> Starlette:
        """Return the application."""
        routes = [("/healthz", self._is_alive), ("/readyz", self._is_ready), ("/metrics", self._show_metrics)]
        return Starlette(routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes])

    async def _is_alive(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    async def _is_ready(self, request: Request) -> PlainTextResponse:
        if self.worker is None or self.worker.stopping:
            return PlainTextResponse("it does not work\n", 503)
        if await self.kept.remember("ready", READY_SECONDS, lambda: can_read(self.store)):
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the store cannot be read\n", 503)

    async def _show_metrics(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse(generate_latest(_Found(self._list_metrics())), media_type=CONTENT_TYPE_LATEST)

    def _list_metrics(self) -> list[Metric]:
        operations = CounterMetricFamily(
            "fireswarm_process_store_operations", "Billed operations of this process on the store", labels=["kind"]
        )
        for kind in ("reads", "writes", "deletes"):
            operations.add_metric([kind], getattr(self.store.usage, kind))
        if self.worker is None:
            return [operations]
        claims = CounterMetricFamily(
            "fireswarm_process_claims", "Attempts of this process to claim a task", labels=["result"]
        )
        for result, number in zip(("won", "lost"), self.worker.contention, strict=True):
            claims.add_metric([result], number)
        return [
            operations,
            claims,
            CounterMetricFamily("fireswarm_process_turns", "Turns that this process has ended", self.worker.settled),
            CounterMetricFamily("fireswarm_process_faults", "Unexpected errors of this process", self.worker.faults),
            GaugeMetricFamily("fireswarm_process_held_tasks", "Tasks that this process holds", len(self.worker.held)),
        ]
