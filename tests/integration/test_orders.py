"""An operator pauses, resumes and drains roles and agents: what they claim, what they hold, and who says so."""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import anyio
import pytest

from fireswarm.contracts.ports import Merge
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import NotFound
from fireswarm.swarm.records.idle_mail import find_idle_mail
from fireswarm.swarm.records.orders import PLACE, Order, Orders, read_orders
from fireswarm.swarm.worker.loop import Worker
from tests.support.swarm import SwarmRig
from tests.support.working import Gate, eventually, with_skills, working

pytestmark = pytest.mark.anyio


async def test_paused_role_goes_on_with_what_it_holds_and_claims_nothing_until_it_is_resumed(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        held = await swarm.submit("held", skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        order = await swarm.client.orders.pause("scout", "the disk is full")
        assert (order.paused, order.drained, order.reason) == (True, False, "the disk is full")
        await swarm.clock.settle()
        waits = await swarm.submit("waits", skill="noop")
        gate.opened.set()
        await eventually(swarm, lambda: worker.settled == 1, "going on with what it holds")
        await swarm.clock.advance(300)
        assert (await swarm.task(held.task_id)).status is TaskStatus.DONE
        assert (await swarm.task(waits.task_id)).status is TaskStatus.QUEUED
        why = await swarm.client.explain(waits.task_id)
        assert "paused by an operator: the disk is full" in why and "swarm resume scout" in why
        [beat] = await swarm.core.heartbeats.latest()
        assert beat.message == "paused by an operator: the disk is full" and beat.lives_at(swarm.clock.now())
        assert await swarm.client.orders.resume("scout")
        await eventually(swarm, lambda: worker.settled == 2, "going on after the resume")
        assert "paused" not in await swarm.client.explain(waits.task_id)
        assert not await swarm.client.orders.resume("scout"), "there is no order any more"


async def test_agent_that_starts_in_a_paused_role_claims_nothing(swarm: SwarmRig) -> None:
    task = await swarm.submit("waits")
    await swarm.client.orders.pause("scout")
    async with working(swarm.core) as worker, working(swarm.core, "memory", "memory-1") as other:
        await swarm.submit("another role", role="memory")
        await eventually(swarm, lambda: other.settled == 1, "the other role")
        await swarm.clock.advance(300)
        assert worker.settled == 0 and (await swarm.task(task.task_id)).epoch == 0


async def test_one_agent_is_paused_and_the_others_work(swarm: SwarmRig) -> None:
    async with working(swarm.core) as paused, working(swarm.core, "scout", "scout-2") as other:
        await swarm.clock.settle()
        await swarm.client.orders.pause("scout-1")
        await swarm.clock.settle()
        for number in range(5):
            await swarm.submit(f"task {number}")
        await swarm.clock.advance(60)
        assert (paused.settled, other.settled) == (0, 5)
        task = await swarm.submit("later")
        assert "paused" not in await swarm.client.explain(task.task_id), "its role works"


async def test_drained_agent_hands_its_tasks_back_and_ends(swarm: SwarmRig) -> None:
    gate = Gate()
    worker = Worker(with_skills(swarm, gate=gate), "scout", "scout-1")
    task = await swarm.submit("long", skill="gate")
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.clock.advance(1)
        await swarm.client.orders.drain("scout", "an upgrade")
        await eventually(swarm, lambda: worker.stopping, "draining")
        worker._time_to_finish.cancel()  # pyright: ignore[reportPrivateUsage] - its seconds are over
    assert worker.drained and not len(worker.held)
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.attempt) == (TaskStatus.QUEUED, 0), "handed back without an attempt"
    gate.opened.set()
    await swarm.clock.advance(1)
    async with working(with_skills(swarm, gate=gate), "scout", "scout-2") as later:  # it began after the drain
        await eventually(swarm, lambda: later.settled == 1, "the work of an agent that began later")
        assert not later.drained


def order(since: float, **given: Any) -> Order:
    from datetime import UTC, datetime

    fields: dict[str, Any] = {"subject": "", "paused": False, "drained": True, **given}
    return Order(role="scout", since=datetime.fromtimestamp(since, UTC), **fields)


def test_process_that_restarts_in_a_drained_fleet_ends_and_one_of_a_later_fleet_works() -> None:
    early, late = (
        Orders("scout", "scout-new", "1000.5ab1.scout-1", 2000.0),
        Orders("scout", "scout-new", "3000.5ab2.scout-1", 3001.0),
    )
    assert early.take([order(1500.0)]) and early.drained
    assert not late.take([order(1500.0)]) and not late.drained
    assert early.take([]) and not early.active
    assert not early.take([order(1500.0, subject="1000.5ab1.scout-2")]), "another place"
    assert early.take([order(1500.0, subject="1000.5ab1.scout-1")]) and early.drained
    odd = Orders("scout", "scout-new", "9999999999999999999.zz.scout-1", 1600.0)
    assert not odd.take([order(1500.0)]), "a malformed place counts for nothing"


async def test_pause_of_an_agent_is_for_its_place_also_after_a_restart(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLACE, "1000.5ab1.scout-1")
    async with working(swarm.core, "scout", "scout-old"):
        await swarm.clock.settle()
        given = await swarm.client.orders.pause("scout-old")
        assert given.subject == "1000.5ab1.scout-1"
    await swarm.submit("waits")
    async with working(swarm.core, "scout", "scout-new") as restarted:
        await swarm.clock.advance(120)
        assert restarted.settled == 0
        assert await swarm.client.orders.resume("scout-new")
        await eventually(swarm, lambda: restarted.settled == 1, "working")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"payload": "paused"},
        {"payload": {"signals": [{"name": "stop", "strength": 1.0}]}},
        {"payload": {"signals": [{"name": "paused", "strength": 99}]}},
        {"payload": {"signals": "paused"}, "created_at": "yesterday"},
        {"payload": {"signals": [{"name": "drained", "strength": 1.0}]}, "created_at": 7, "session_hash": 3},
    ],
)
async def test_malformed_order_stops_nothing_and_is_refused(swarm: SwarmRig, fields: dict[str, Any]) -> None:
    written = {"to_agent_id": "scout", "kind": "order", "status": "new", **fields}
    await swarm.store.commit([Merge("agent_mailbox/by-hand", written)])
    async with working(swarm.core) as worker:
        await swarm.submit("goes on")
        await eventually(swarm, lambda: worker.settled == 1, "working")
        stored = (await swarm.store.get("agent_mailbox/by-hand")).data
    assert stored["status"] == "read" and stored["outcome"].startswith("refused")


async def test_order_by_hand_is_followed_and_one_of_a_newer_version_is_left_alone(swarm: SwarmRig) -> None:
    signals = {"payload": {"signals": [{"name": "paused", "strength": 1.0}]}}
    by_hand = {"to_agent_id": "scout", "kind": "order", "status": "new", **signals}
    await swarm.store.commit([Merge("agent_mailbox/by-hand", by_hand)])
    await swarm.submit("waits")
    async with working(swarm.core) as worker:
        await swarm.clock.advance(60)
        assert worker.settled == 0
        newer = {**by_hand, "schema_version": 99}
        await swarm.store.commit([Merge("agent_mailbox/by-hand", newer)])
        await eventually(swarm, lambda: worker.settled == 1, "working")
        assert (await swarm.store.get("agent_mailbox/by-hand")).data["status"] == "new"


async def test_order_costs_no_read_of_an_idle_agent_and_is_no_idle_mail(swarm: SwarmRig) -> None:
    async def cost() -> tuple[int, int]:
        async with working(swarm.core):
            await swarm.clock.advance(120)
            before = swarm.store.usage.copy()
            await swarm.clock.advance(3600)
            used = swarm.store.usage.minus(before)
        return used.reads, used.writes

    idle = await cost()
    await swarm.client.orders.pause("scout")
    paused = await cost()
    assert paused[0] <= idle[0] and paused[1] <= idle[1] + 2, (idle, paused)
    assert await find_idle_mail(swarm.store, tuple(swarm.core.roles)) == []


async def test_unknown_names_are_refused_and_orders_are_listed(swarm: SwarmRig) -> None:
    for name in ("scuot", "", "a/b", "scout-none", "x" * 2_000):
        with pytest.raises(NotFound, match="no role or agent"):
            await swarm.client.orders.pause(name)
    now = swarm.clock.now()
    beat = AgentStatus(agent_id="scout-9", role="scout", session_hash="s1", status=AgentState.IDLE, created_at=now)
    await swarm.core.heartbeats.beat(beat)
    await swarm.client.orders.pause("scout")
    await swarm.client.orders.drain("scout-9")
    await swarm.client.orders.drain("scout")
    found = {
        order.subject: (order.paused, order.drained) for order in await read_orders(swarm.store, swarm.board.roles)
    }
    assert found == {"": (True, True), "scout-9": (False, True)}
    await swarm.client.orders.pause("scout")
    assert [item.drained for item in await swarm.client.orders.read() if not item.subject] == [False]


async def test_no_task_is_lost_or_done_twice_by_random_orders(swarm: SwarmRig) -> None:
    seed = int(os.environ.get("ORDERS_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"\nORDERS_SEED={seed}")
    rng, done = random.Random(seed), Counter[str]()

    async def count(request: SkillRequest) -> SkillResult:
        await swarm.clock.sleep(rng.uniform(0, 5))
        done[request.task_id] += 1
        return SkillResult(summary="counted")

    core = with_skills(swarm, count=count)
    ids: list[str] = []
    workers: list[Worker] = []
    async with anyio.create_task_group() as group:

        def start() -> None:
            workers.append(Worker(core, "scout", f"scout-{len(workers) + 1}"))
            group.start_soon(workers[-1].run)

        start()
        start()
        for _ in range(60):
            ids.append((await swarm.submit(f"task {len(ids)}", skill="count")).task_id)
            await swarm.clock.advance(rng.uniform(0, 3))
            alive = [worker for worker in workers if not worker.stopping]
            name = rng.choice(["scout", *(worker.agent_id for worker in alive)])
            what = rng.choice(["pause", "resume", "resume", "drain", "start", "nothing"])
            if what == "start" and len(alive) < 4:
                start()
            elif what in ("pause", "resume", "drain"):
                await getattr(swarm.client.orders, what)(name)
        for item in await swarm.client.orders.read():
            await swarm.client.orders.resume(item.subject or item.role)
        start()
        for _ in range(100):
            await swarm.clock.advance(timedelta(minutes=1).total_seconds())
            if all([(await swarm.task(task_id)).status is TaskStatus.DONE for task_id in ids]):
                break
        for worker in workers:
            worker.stop()
    tasks = [await swarm.task(task_id) for task_id in ids]
    assert {task.status for task in tasks} == {TaskStatus.DONE}
    assert set(done) == set(ids)
    twice = {task_id for task_id, times in done.items() if times > 1}
    assert twice == set(), "a task that was handed back had done its work"
    print(f"{len(workers)} agents, {sum(worker.drained for worker in workers)} of them drained")
