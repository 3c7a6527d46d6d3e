"""``swarm submit --wait`` follows a task to its end with few billed reads."""

from __future__ import annotations

import random
from dataclasses import replace

import anyio
import pytest

from fireswarm.cli.swarm.tasks import submit_task
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.storage.firestore.store import FirestoreStore
from fireswarm.swarm.board import Board
from fireswarm.swarm.records.heartbeats import Heartbeats
from tests.support.swarm import SwarmRig
from tests.support.working import with_skills, working

pytestmark = pytest.mark.anyio

MOST_READS = 20


async def test_waiting_for_a_task_costs_at_most_20_reads_among_60_dead_agents(
    swarm: SwarmRig, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(60):
        dead = AgentStatus(
            agent_id=f"old-{number}",
            role="memory",
            session_hash="s1",
            status=AgentState.IDLE,
            created_at=swarm.clock.now(),
        )
        await swarm.core.heartbeats.beat(dead)
    await swarm.clock.advance(600)
    core = with_skills(swarm)
    store = FirestoreStore(swarm.connect(), swarm.clock)
    operator = replace(
        core,
        store=store,
        board=Board(store, swarm.clock, core.board.roles, core.board.rules, random.Random(2)),
        heartbeats=Heartbeats(store, swarm.clock),
    )
    spec = TaskSpec(objective="look", assigned_to="scout", session_hash="s1", skill="noop")
    async with working(core), anyio.create_task_group() as group:
        await swarm.clock.settle()

        async def flow() -> None:
            while True:
                await swarm.clock.advance(0.1)

        group.start_soon(flow)
        assert await submit_task(Swarm(operator), spec, wait=True, as_json=False) is TaskStatus.DONE
        group.cancel_scope.cancel()
    assert "no scout agent is running" not in capsys.readouterr().err
    assert store.usage.reads <= MOST_READS, store.usage


async def test_role_without_a_running_agent_is_reported(swarm: SwarmRig, capsys: pytest.CaptureFixture[str]) -> None:
    await swarm.store.commit([Merge("mcp_memory/status-x", {"type": "agent_status", "role": "scout", "created_at": 1})])
    spec = TaskSpec(objective="look", assigned_to="scout", session_hash="s1", skill="noop")
    await submit_task(Swarm(with_skills(swarm)), spec, wait=False, as_json=False)
    assert "no scout agent is running: start all roles with `swarm up`" in capsys.readouterr().err
