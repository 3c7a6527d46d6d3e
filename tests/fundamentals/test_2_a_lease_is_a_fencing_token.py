"""The holder of a stale epoch can commit nothing: no result, no renewal and no handoff."""

from __future__ import annotations

import pytest

from fireswarm.contracts.ports import Update
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import LeaseLost
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.board import HeldLease
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


async def lose_to_b(swarm: SwarmRig) -> tuple[str, HeldLease]:
    task = await swarm.submit()
    stale = await swarm.claim_one("agent-a")
    await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
    swept = await swarm.board.sweep("scout")
    assert swept.queued == (task.task_id,)
    return task.task_id, stale


async def test_an_expired_lease_is_taken_over_by_a_peer_with_a_higher_epoch(swarm: SwarmRig) -> None:
    task_id, _ = await lose_to_b(swarm)
    held = await swarm.claim_one("agent-b")
    assert (held.task.task_id, held.epoch) == (task_id, 2)


async def test_holder_of_an_expired_lease_can_neither_settle_nor_renew(swarm: SwarmRig) -> None:
    task_id, stale = await lose_to_b(swarm)
    held = await swarm.claim_one("agent-b")
    before = await swarm.raw(task_id)
    with pytest.raises(LeaseLost, match="epoch 1 .* has ended"):
        await swarm.board.settle(stale, done("too late"))
    with pytest.raises(LeaseLost):
        await swarm.board.renew(stale)
    assert await swarm.raw(task_id) == before
    await swarm.settle(held, done("by b"))
    assert (await swarm.task(task_id)).summary == "by b"


async def test_lease_is_over_once_its_task_is_settled(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    await swarm.settle(held, done("first"))
    with pytest.raises(LeaseLost, match="it was settled"):
        await swarm.settle(held, done("second"))
    assert (await swarm.task(held.task.task_id)).summary == "first"


async def test_holder_settles_a_task_that_was_edited_meanwhile(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    await swarm.store.commit([Update(task_path(held.task.task_id), {"priority": 9})])
    await swarm.settle(held, done("after the edit"))
    task = await swarm.task(held.task.task_id)
    assert (task.priority, task.summary, held.task.priority) == (9, "after the edit", 9)


async def test_handoff_with_a_stale_lease_creates_no_task(swarm: SwarmRig) -> None:
    task_id, stale = await lose_to_b(swarm)
    planned = PlannedTask(key="x", assigned_to="executor", objective="should never exist")
    with pytest.raises(LeaseLost):
        await swarm.board.settle(stale, Handoff((planned,)))
    assert [task.task_id for task in await swarm.board.list()] == [task_id]


async def test_lost_epoch_is_recorded_as_a_timed_out_run(swarm: SwarmRig) -> None:
    task_id, _ = await lose_to_b(swarm)
    run = (await swarm.store.get(f"agent_runs/{task_id}.1")).data
    assert run is not None
    assert run["status"] == "timeout"
    stored = await swarm.task(task_id)
    assert (stored.status, stored.attempt) == (TaskStatus.QUEUED, 1)


async def test_renewed_lease_is_not_swept(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    held = await swarm.claim_one()
    for _ in range(5):
        await swarm.clock.advance(swarm.board.rules.renew_every_seconds)
        await swarm.board.renew(held)
        assert (await swarm.board.sweep("scout")).queued == ()
    await swarm.settle(held)
    assert (await swarm.task(task.task_id)).status is TaskStatus.DONE


async def test_lease_of_a_task_that_was_changed_meanwhile_is_renewed(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    await swarm.store.commit([Update(task_path(held.task.task_id), {"priority": 9})])
    await swarm.clock.advance(swarm.board.rules.renew_every_seconds)
    before = held.expires_at
    await swarm.board.renew(held)
    assert held.expires_at > before
