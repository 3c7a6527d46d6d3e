"""A worker under faults: the store is unavailable or full, its lease is stolen, or many workers compete."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from google.api_core import exceptions as google

from fireswarm.contracts.ports import Create, Update
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.outcome import Released
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import StoreUnavailable
from fireswarm.storage.firestore.store import COMMIT_ATTEMPTS
from fireswarm.swarm.worker.loop import Worker
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done
from tests.support.unreliable import time_flows, unreliable
from tests.support.working import Gate, eventually, with_skills, working

pytestmark = pytest.mark.anyio

AWAY = [("before", google.ServiceUnavailable("down"))]
FULL = [("before", google.ResourceExhausted("no space left on the disk"))]


async def with_time_passing(swarm: SwarmRig, worker: Worker, settled: int) -> None:
    """Let virtual time pass in small steps until the worker has settled so many tasks."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while worker.settled < settled:
            await swarm.clock.advance(0.5)


@pytest.mark.parametrize("faults", [AWAY, FULL])
async def test_result_is_kept_until_an_unavailable_or_full_store_recovers(
    swarm: SwarmRig, faults: list[tuple[str, Exception]]
) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        api = unreliable(swarm, *(faults * 9))
        gate.opened.set()
        await with_time_passing(swarm, worker, 1)
    assert api.attempts > 9
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.epoch, gate.began) == (TaskStatus.DONE, 1, 1)


async def test_worker_tries_twice_a_second_to_settle_while_it_has_no_permission(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        api = unreliable(swarm, *([("before", google.PermissionDenied("not yet"))] * 200))
        gate.opened.set()
        await swarm.clock.advance(10)
        assert 20 <= api.attempts <= 30
        api.recover()
        await with_time_passing(swarm, worker, 1)


async def test_turn_whose_lease_expires_at_the_moment_of_a_renewal_ends(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        unreliable(swarm, *([("before", google.PermissionDenied("not now"))] * 200))
        await swarm.clock.advance(swarm.board.rules.lease_seconds)
        assert not worker.held
        unreliable(swarm)


async def test_turn_whose_journal_cannot_be_opened_ends_when_the_store_recovers(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the second turn: the first one may have left steps."""
    task = await swarm.submit(skill="noop")
    await swarm.settle(await swarm.claim_one(), Released())
    failures, get_many = [StoreUnavailable("away")] * 5, type(swarm.store).get_many

    async def get_unless_away(store: Any, paths: list[str]) -> Any:
        if failures and any(path.startswith("agent_runs/") for path in paths):
            raise failures.pop()
        return await get_many(store, paths)

    monkeypatch.setattr(type(swarm.store), "get_many", get_unless_away)
    async with working(swarm.core) as worker:
        await with_time_passing(swarm, worker, 1)
    stored = await swarm.task(task.task_id)
    assert (failures, stored.status_reason, stored.epoch, stored.attempt) == ([], StatusReason.RETRY_BACKOFF, 2, 0)


@pytest.mark.parametrize("faults", [AWAY, FULL])
async def test_claiming_resumes_when_the_store_recovers(swarm: SwarmRig, faults: list[tuple[str, Exception]]) -> None:
    task = await swarm.submit(skill="noop")
    unreliable(swarm, *(faults * 12))
    async with working(swarm.core) as worker:
        await with_time_passing(swarm, worker, 1)
    assert (await swarm.task(task.task_id)).status is TaskStatus.DONE


async def test_result_is_dropped_after_the_lease_was_taken(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        raw = await swarm.raw(task.task_id)
        stolen = raw["lease"] | {"owner_agent_id": "thief", "epoch": 2}
        await swarm.store.commit([Update(f"agent_tasks/{task.task_id}", {"lease": stolen, "epoch": 2})])
        before = await swarm.raw(task.task_id)
        gate.opened.set()
        await eventually(swarm, lambda: not worker.held, "ending the turn")
        assert worker.settled == 0
    assert await swarm.raw(task.task_id) == before


async def test_turn_ends_when_its_lease_cannot_be_renewed(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        unreliable(swarm, *(AWAY * 400))
        with anyio.fail_after(PATIENCE_SECONDS):
            while worker.held:
                await swarm.clock.advance(5)
                await anyio.lowlevel.checkpoint()
        assert gate.ended == 0
        unreliable(swarm)


async def test_deadline_passing_during_the_turn_blocks_the_task(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate", deadline=swarm.clock.now() + timedelta(seconds=100))
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.clock.advance(101)
        assert worker.settled == 1
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.DEADLINE_EXCEEDED


async def test_competing_workers_execute_every_task_once(swarm: SwarmRig) -> None:
    executed: Counter[str] = Counter()

    async def count(request: SkillRequest) -> SkillResult:
        executed[request.task_id] += 1
        return SkillResult(summary="counted")

    core = with_skills(swarm, count=count)
    tasks = [await swarm.submit(f"task {number}", skill="count") for number in range(60)]
    rivals = [Worker(core, "scout", f"scout-{number}") for number in range(8)]
    async with anyio.create_task_group() as group:
        for rival in rivals:
            group.start_soon(rival.run)
        with anyio.fail_after(PATIENCE_SECONDS):
            while sum(rival.settled for rival in rivals) < len(tasks):
                await swarm.clock.advance(0.01)
        for rival in rivals:
            rival.stop()
    assert set(executed.values()) == {1}
    assert len(executed) == len(tasks)
    assert {(await swarm.task(task.task_id)).epoch for task in tasks} == {1}
    assert sum(rival.contention[0] for rival in rivals) == len(tasks)


async def test_stopping_worker_lets_short_turns_finish(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        worker.stop()
        await swarm.clock.settle()
        gate.opened.set()
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.epoch) == (TaskStatus.DONE, 1)


async def test_stopping_worker_claims_no_further_task(swarm: SwarmRig) -> None:
    """One of eight places is free: the worker waits a moment for more, and is stopped meanwhile."""
    gate = Gate()
    worker = swarm.core.settings.worker.model_copy(update={"concurrency": 8})
    settings = swarm.core.settings.model_copy(update={"worker": worker})
    for number in range(7):
        await swarm.submit(f"begun {number}", skill="gate")
    async with working(replace(with_skills(swarm, gate=gate), settings=settings)) as stopped:
        await eventually(swarm, lambda: gate.began == 7, "starting")
        later = await swarm.submit("later", skill="gate")
        stopped.stop()
        await swarm.clock.settle()
        gate.opened.set()
    stored = await swarm.task(later.task_id)
    assert (stored.status, stored.epoch, gate.ended) == (TaskStatus.QUEUED, 0, 7)


async def test_a_hand_written_task_is_done_without_waiting_for_a_sweep(swarm: SwarmRig) -> None:
    async with working(swarm.core) as worker:
        await swarm.clock.settle()
        before = swarm.clock.now()
        fields = {"assigned_to": "scout", "status": "queued", "objective": "by hand", "skill": "noop"}
        await swarm.store.commit([Create("agent_tasks/by-hand", fields)])
        await eventually(swarm, lambda: worker.settled == 1, "doing it")
        assert swarm.clock.now() == before
    assert (await swarm.task("by-hand")).status is TaskStatus.DONE


async def test_tasks_claimed_ahead_are_returned_when_the_worker_stops(swarm: SwarmRig) -> None:
    gate = Gate()
    core = with_skills(swarm, gate=gate)
    capacity = core.settings.worker.concurrency
    async with working(core) as worker:
        for number in range(3 * capacity):
            await swarm.submit(f"quick {number}", skill="noop")
        await eventually(swarm, lambda: worker.settled == 3 * capacity, "getting into pace")
        slow = [await swarm.submit(f"slow {number}", skill="gate") for number in range(3 * capacity)]
        await eventually(swarm, lambda: gate.began >= capacity < len(worker.held), "claiming ahead")
        assert gate.began == capacity, "more turns ran at once than there are places"
        worker.stop()
        await eventually(swarm, lambda: len(worker.held) == capacity, "giving back what has not begun")
        gate.opened.set()
    ends = [await swarm.task(task.task_id) for task in slow]
    assert sum(task.status is TaskStatus.DONE for task in ends) == capacity
    assert all(
        task.status is TaskStatus.QUEUED and task.attempt == 0 for task in ends if task.status is not TaskStatus.DONE
    )


@pytest.mark.parametrize(("long_turns", "held"), [(1, 2), (2, 1)])
async def test_worker_claims_ahead_while_its_turns_take_below_a_tenth_of_a_second_on_average(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, long_turns: int, held: int
) -> None:
    gate, now = Gate(), [0.0]

    async def lasts(request: SkillRequest) -> SkillResult:
        now[0] += request.context["seconds"]
        return SkillResult(summary="done")

    worker = swarm.core.settings.worker.model_copy(update={"concurrency": 1})
    settings = swarm.core.settings.model_copy(update={"worker": worker})
    core = replace(with_skills(swarm, gate=gate, lasts=lasts), settings=settings)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    async with working(core) as worker:
        for number, seconds in enumerate([0.01] * 10 + [0.4] * long_turns, 1):
            await swarm.submit(f"turn {number}", skill="lasts", context={"seconds": seconds})
            await eventually(swarm, lambda count=number: worker.settled == count, "working")
        for number in range(3):
            await swarm.submit(f"waits {number}", skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.clock.settle()
        assert len(worker.held) == held
        gate.opened.set()


@pytest.mark.parametrize("lost_answers", [1, COMMIT_ATTEMPTS])
async def test_run_with_lost_commit_answers_is_still_closed_completely(swarm: SwarmRig, lost_answers: int) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("began")
    unreliable(swarm, *[("after", google.ServiceUnavailable("cut"))] * lost_answers)
    async with time_flows(swarm):
        with contextlib.suppress(StoreUnavailable):
            await journal.flush()
        await swarm.board.settle(held, done(), journal.closing(RunStatus.COMPLETED, "done", None, None))
    run = await swarm.run(held)
    assert (run["status"], run["run_id"], run["epoch"]) == ("completed", held.run_id, 1)
    assert [event["type"] for event in run["events"]] == ["began"]


async def test_worker_stops_in_time_while_its_claim_hangs(swarm: SwarmRig) -> None:
    """A call to a store that does not answer lasts until its RPC times out, after forty seconds or more."""
    settings = swarm.core.settings
    brief = settings.worker.model_copy(update={"drain_seconds": 0.05})
    core = replace(swarm.core, settings=settings.model_copy(update={"worker": brief}))
    asked = anyio.Event()

    async def hang(*arguments: object, **options: object) -> object:
        asked.set()
        return await anyio.sleep_forever()

    api = unreliable(swarm)
    for name in ("run_query", "commit", "batch_get_documents"):
        setattr(api, name, hang)
    worker = Worker(core, "scout", "scout-1")
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await asked.wait()
            worker.stop()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_task_delivered_by_a_listener_during_an_outage_is_done_soon_after_it(swarm: SwarmRig, when: str) -> None:
    """The claim of a delivered task fails, or its answers are lost; nobody waits for the next sweep."""
    async with working(swarm.core) as worker:
        await swarm.clock.advance(1)
        down = [(when, google.ServiceUnavailable("down"))] * COMMIT_ATTEMPTS
        unreliable(swarm, ("never", google.Unknown("the submit")), *down)
        task = await swarm.submit(skill="noop")
        for _ in range(20):
            await swarm.clock.advance(1)
        assert worker.settled == 1
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.epoch, stored.attempt) == (TaskStatus.DONE, 1, 0)
