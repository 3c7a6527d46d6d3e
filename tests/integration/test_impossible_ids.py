"""Ids that Firestore accepts nowhere, written by hand where a document names another one."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.swarm.task import TaskStatus, idempotency_key, task_id_for
from fireswarm.swarm.records.spending import read_spending
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, working

pytestmark = pytest.mark.anyio

IMPOSSIBLE = ("__x__", ".", "..", "a/b", "😀" * 400, "")
LISTS = ("depends_on", "dependents", "children", "gave_up")
NAMES = (*LISTS, "duplicate_of", "message_id", "parent_task_id", "for_agent", "key_id", "task_id")


@pytest.mark.parametrize("odd", IMPOSSIBLE)
@pytest.mark.parametrize("name", NAMES)
async def test_task_that_names_an_impossible_id_stops_no_other(swarm: SwarmRig, name: str, odd: str) -> None:
    data: dict[str, Any] = {
        "assigned_to": "scout",
        "status": "queued",
        "objective": "odd",
        "session_hash": "s1",
        "skill": "noop",
    }
    async with working(with_skills(swarm)) as worker:
        await swarm.store.commit([Create("agent_tasks/odd", data | {name: [odd] if name in LISTS else odd})])
        good = await swarm.submit("good", skill="noop")
        await eventually(swarm, lambda: worker.settled >= 1, "working")
        await swarm.clock.advance(30)
        assert worker.faults == 0
    assert (await swarm.task(good.task_id)).status is TaskStatus.DONE
    raw = await swarm.raw("odd")
    assert raw["status"] == "done" or raw["status_reason"] == "dead_letter", raw["summary"]


@pytest.mark.parametrize("odd", IMPOSSIBLE)
async def test_key_document_that_names_an_impossible_id_is_replaced(swarm: SwarmRig, odd: str) -> None:
    key = task_id_for("s1", idempotency_key("look around", {}, ""), "scout")
    await swarm.store.commit([Merge(f"agent_task_keys/{key}", {"task_id": odd})])
    assert (await swarm.submit()).task_id == key


@pytest.mark.parametrize("odd", IMPOSSIBLE)
async def test_run_that_names_an_impossible_task_does_not_hide_the_cost_of_others(swarm: SwarmRig, odd: str) -> None:
    good = await swarm.submit("good")
    run = {"task_id": good.task_id, "agent_id": "a", "role": "scout", "session_hash": "s1", "epoch": 1}
    run |= {"status": "completed", "started_at": swarm.clock.now(), "usage": {"calls": 1, "usd": 1.0, "tokens": 1}}
    await swarm.store.commit(
        [
            Create("agent_runs/odd", run | {"run_id": "odd", "chain_id": odd}),
            Create("agent_runs/good", run | {"run_id": "good", "chain_id": good.task_id}),
        ]
    )
    spending = await read_spending(swarm.store, 10)
    assert spending.runs == 2 and spending.objectives[good.task_id] == "good"
