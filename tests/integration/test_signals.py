"""``/metrics`` for Prometheus, its alert rules, and ``/healthz`` and ``/readyz`` for whoever starts the processes."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fireswarm.api.routes import health, metrics
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.status import AgentState, AgentStatus, QueueHints
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.llm.spend import Spend, StoreLedger
from tests.support.api import Api, open_api
from tests.support.swarm import ROLES, open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


async def scrape(api: Api) -> dict[tuple[str, ...], float]:
    """Read the figures as Prometheus does: by name and labels."""
    answer = await api.call("GET", "/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=")
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    return {(sample.name.removeprefix("fireswarm_"), *sample.labels.values()): sample.value for sample in samples}


async def test_metrics_tell_queues_blocked_tasks_processes_and_costs(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "KEPT_SECONDS", 0.0)
    swarm = api.swarm
    await swarm.submit("one")
    held = await swarm.claim_one()
    await swarm.settle(held, Waiting(reason=StatusReason.PAUSED, summary="later"))
    await swarm.submit("two")
    await swarm.clock.advance(90)
    await swarm.submit("three")
    beat = AgentStatus(
        agent_id="scout-1",
        role="scout",
        session_hash="s1",
        status=AgentState.WORKING,
        queue_hints=QueueHints(capacity=4),
        created_at=swarm.clock.now(),
    )
    await swarm.core.heartbeats.beat(beat)
    ledger = StoreLedger(swarm.store, swarm.clock, "s1", "scout-1")
    await ledger.add(Spend(calls=2, tokens=30, usd=0.25))
    await swarm.store.commit(ledger.writes())
    await swarm.clock.advance(7)
    found = await scrape(api)
    shown = {
        ("tasks", "queued"): 2, ("tasks", "blocked"): 1, ("tasks", "done"): 0, ("blocked_tasks", "paused"): 1,
        ("blocked_tasks", "dead_letter"): 0, ("queued_tasks", "scout"): 2, ("queued_tasks", "memory"): 0,
        ("oldest_queued_seconds", "scout"): 97, ("oldest_queued_seconds", "memory"): 0,
        ("role_processes", "scout", "working"): 1, ("living_role_processes", "scout"): 1,
        ("living_role_processes", "memory"): 0, ("heartbeat_age_seconds", "scout"): 7,
        ("model_calls_today",): 2, ("model_tokens_today",): 30, ("model_usd_today",): 0.25,
    }  # fmt: skip
    assert {name: found.get(name) for name in shown} == pytest.approx(shown, abs=0.01), found
    assert found["store_operations_total", "reads"] > 0
    await swarm.clock.advance(100)
    assert (await scrape(api))["living_role_processes", "scout"] == 0


async def test_metrics_need_the_token_and_are_read_from_the_store_once_in_ten_seconds(api: Api) -> None:
    assert (await api.call("GET", "/metrics", headers={"Authorization": "Bearer guess"})).status_code == 401
    start = api.swarm.store.usage.copy()
    await scrape(api)
    assert api.swarm.store.usage.minus(start).reads <= len(TaskStatus) + len(StatusReason) + 2 * len(ROLES) + 5
    before = api.swarm.store.usage.copy()
    for _ in range(20):
        await scrape(api)
    assert api.swarm.store.usage.minus(before).reads == 0


async def test_health_needs_no_token_and_costs_one_read_however_often_it_is_asked(api: Api) -> None:
    nobody = {"Authorization": ""}
    assert (await api.call("GET", "/healthz", headers=nobody)).text == "ok\n"
    before = api.swarm.store.usage.copy()
    for _ in range(20):
        answer = await api.call("GET", "/readyz", headers=nobody)
        assert (answer.status_code, answer.text) == (200, "ok\n")
    assert api.swarm.store.usage.minus(before).reads <= 1
    for method, path in (("POST", "/healthz"), ("GET", "/healthz/"), ("GET", "/v1/status"), ("HEAD", "/v1/tasks")):
        assert (await api.call(method, path, headers=nobody)).status_code == 401


async def test_process_whose_store_is_away_is_alive_but_not_ready(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "READY_SECONDS", 0.0)
    assert (await api.call("GET", "/readyz")).status_code == 200
    api.swarm.database.close()
    answer = await api.call("GET", "/readyz")
    assert (answer.status_code, answer.text) == (503, "the store cannot be read\n")
    assert (await api.call("GET", "/healthz")).status_code == 200


async def test_store_that_does_not_answer_is_not_ready_within_seconds(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: object) -> None:
        await anyio.Event().wait()

    monkeypatch.setattr(health, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(api.swarm.client.parts.store, "query", hangs)
    answer = await api.call("GET", "/readyz")
    assert (answer.status_code, answer.text) == (503, "the store cannot be read\n")
