"""Many children, dependents or repetitions of one task settle in one commit."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Failed, Handoff, Outcome
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import StoreUnavailable
from fireswarm.swarm.board import HeldLease, dependents, waits
from fireswarm.swarm.board.dependents import MAX_WRITTEN
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


async def test_plan_of_400_tasks_is_created_and_its_parent_resumes(swarm: SwarmRig) -> None:
    parent = await swarm.submit("parent", role="architect")
    held = await swarm.claim_one(role="architect")
    plan = tuple(PlannedTask(key=f"t{n}", assigned_to="scout", objective=f"part {n}") for n in range(400))
    await swarm.settle(held, Handoff(plan))
    assert (await swarm.task(parent.task_id)).waiting_on == 400
    for _ in range(20):
        for lease in await swarm.claim(wanted=20):
            await swarm.settle(lease)
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


@pytest.mark.parametrize("canceled", [False, True])
async def test_task_with_500_dependents_ends(swarm: SwarmRig, canceled: bool) -> None:
    first = await swarm.submit("first")
    later = [(await swarm.submit(f"later {n}", depends_on=(first.task_id,))).task_id for n in range(500)]
    held = await swarm.claim_one()
    if canceled:
        await swarm.board.cancel(first.task_id)
    else:
        await swarm.settle(held, done())
    reasons = {(await swarm.task(task_id)).status_reason for task_id in later}
    assert reasons == {StatusReason.ESCALATED if canceled else None}


async def test_520_repetitions_of_a_task_end_with_it(swarm: SwarmRig) -> None:
    fields = {"assigned_to": "scout", "status": "queued", "objective": "once", "session_hash": "s1"}
    first = await swarm.submit("once")
    for number in range(520):
        await swarm.store.commit([Create(f"agent_tasks/twin-{number:03}", fields)])
    for _ in range(12):
        await swarm.board.admit_hand_written("scout")
    [held] = await swarm.claim(wanted=20)
    assert held.task.task_id == first.task_id
    await swarm.settle(held, done("made"))
    queued = await swarm.board.list(limit=600, status="queued")
    assert len(queued) == 520 and {task.duplicate_of for task in queued} == {first.task_id}


async def delegate(swarm: SwarmRig, count: int, **fields: Any) -> tuple[Task, list[HeldLease]]:
    """A parent that waits for *count* children, and the leases of all children."""
    parent = await swarm.submit("parent", role="architect", **fields)
    held = await swarm.claim_one(role="architect")
    plan = tuple(PlannedTask(key=f"t{n}", assigned_to="scout", objective=f"part {n}") for n in range(count))
    await swarm.settle(held, Handoff(plan))
    leases: list[HeldLease] = []
    while found := await swarm.claim(wanted=20):
        leases += found
    assert len(leases) == count
    return parent, leases


async def test_fan_in_of_60_writes_the_parent_once(swarm: SwarmRig) -> None:
    parent, leases = await delegate(swarm, 60)
    versions: set[str] = set()
    for lease in leases:
        await swarm.settle(lease)
        versions.add(str((await swarm.store.get(f"agent_tasks/{parent.task_id}")).update_time))
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED
    assert len(versions) == 2, "as created, and queued"


@pytest.mark.parametrize(("count", "left"), [(MAX_WRITTEN, MAX_WRITTEN - 1), (MAX_WRITTEN + 1, MAX_WRITTEN + 1)])
@pytest.mark.parametrize("outcome", [done(), Failed("no way")], ids=["done", "given up"])
async def test_parent_of_few_tasks_is_written_at_each_end(
    swarm: SwarmRig, count: int, left: int, outcome: Outcome
) -> None:
    parent, leases = await delegate(swarm, count)
    await swarm.settle(leases[0], outcome)
    assert (await swarm.task(parent.task_id)).waiting_on == left


async def test_dependency_fan_in_of_60_is_counted_too(swarm: SwarmRig) -> None:
    ids = [(await swarm.submit(f"first {n}")).task_id for n in range(60)]
    last = await swarm.submit("last", role="memory", depends_on=tuple(ids))
    while leases := await swarm.claim(wanted=20):
        async with anyio.create_task_group() as group:
            for lease in leases:
                group.start_soon(swarm.settle, lease)
    ready = await swarm.task(last.task_id)
    assert (ready.status, ready.waiting_on) == (TaskStatus.QUEUED, 0)


async def test_sweep_counts_when_the_worker_ended_between_commit_and_count(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, leases = await delegate(swarm, 20)

    async def lost(*arguments: Any) -> bool:
        raise StoreUnavailable("the process is gone")

    with monkeypatch.context() as patched:
        patched.setattr(dependents, "count_awaited", lost)
        for lease in leases:
            await swarm.settle(lease)
    assert (await swarm.task(parent.task_id)).waiting_on == 20
    await swarm.clock.advance(60)
    await swarm.board.sweep("architect")
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


async def test_end_of_long_work_that_nobody_counted_is_noticed_within_minutes(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, leases = await delegate(swarm, 20)
    for _ in range(12):  # two hours of work
        await swarm.clock.advance(600)
        await swarm.board.sweep("architect")
        for lease in leases:
            await swarm.board.renew(lease)

    async def lost(*arguments: Any) -> bool:
        raise StoreUnavailable("the process is gone")

    with monkeypatch.context() as patched:
        patched.setattr(dependents, "count_awaited", lost)
        for lease in leases:
            await swarm.settle(lease)
    await swarm.clock.advance(301)
    await swarm.board.sweep("architect")
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED


async def end_somehow(swarm: SwarmRig, lease: HeldLease, rng: random.Random) -> None:
    """End a child: done, given up, given up and then retried or done by a person, or canceled."""
    match rng.randrange(6):
        case 0:
            await swarm.settle(lease, Failed("no way"))
        case 1:
            await swarm.settle(lease, Failed("no way"))
            await swarm.board.retry(lease.task.task_id)
            for again in await swarm.claim(wanted=1):
                await swarm.settle(again)
        case 2:
            await swarm.settle(lease, Failed("no way"))
            await swarm.store.commit([Merge(f"agent_tasks/{lease.task.task_id}", {"status": "done"})])
            await swarm.board.settle_edited(await swarm.store.get(f"agent_tasks/{lease.task.task_id}"))
        case 3:
            await swarm.board.cancel(lease.task.task_id)
        case _:
            await swarm.settle(lease)


@pytest.mark.parametrize("seed", range(12))
async def test_parent_resumes_exactly_when_no_child_is_left(
    swarm: SwarmRig, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    largest = rng.choice((0, 1, 3, 8))
    monkeypatch.setattr(dependents, "MAX_WRITTEN", largest)
    monkeypatch.setattr(waits, "MAX_WRITTEN", largest)
    parent, leases = await delegate(swarm, rng.choice((3, 9, 14)))
    rng.shuffle(leases)
    last = leases.pop()
    while leases:
        batch = [leases.pop() for _ in range(min(len(leases), rng.randint(1, 5)))]
        async with anyio.create_task_group() as group:
            for lease in batch:
                group.start_soon(end_somehow, swarm, lease, random.Random(rng.random()))
        assert (await swarm.task(parent.task_id)).status is TaskStatus.BLOCKED, f"seed {seed}"
    while retried := await swarm.claim(wanted=20):
        for lease in retried:
            await swarm.settle(lease)
    await end_somehow(swarm, last, rng)
    ended = await swarm.task(parent.task_id)
    assert (ended.status, ended.waiting_on) == (TaskStatus.QUEUED, 0), f"seed {seed}"


async def test_parent_is_queued_when_a_worker_read_it_as_wide_and_ended_before_its_count(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last nine of ten children read the parent while it waits for ten; one of them never counts."""
    parent, leases = await delegate(swarm, 10)
    first, late, *others = leases
    commit = swarm.store.commit
    dies = f"agent_tasks/{late.task.task_id}"

    async def end_after_the_others(writes: Any, **options: Any) -> Any:
        if any(write.path == dies for write in writes):
            monkeypatch.setattr(swarm.store, "commit", commit)
            for lease in others:
                await swarm.settle(lease)
            await commit(writes, **options)
            raise StoreUnavailable("the process is gone")
        return await commit(writes, **options)

    await swarm.settle(first)
    monkeypatch.setattr(swarm.store, "commit", end_after_the_others)
    with pytest.raises(StoreUnavailable):
        await swarm.settle(late)
    await swarm.clock.advance(60)
    await swarm.board.sweep("architect")
    assert (await swarm.task(parent.task_id)).status is TaskStatus.QUEUED
