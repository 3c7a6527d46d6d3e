"""Background duties go on after an error that no test foresaw, and count it."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any

import pytest

from fireswarm.contracts.ports import DELETE_FIELD, Create, Delete, Update
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.outcome import Retry
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import NotFound, StoreError, StoreUnavailable
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.outputs import KEPT_DAYS
from fireswarm.swarm.worker import upkeep
from fireswarm.swarm.worker.upkeep import SWEEPS_PER_RECLAIM
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig
from tests.support.working import Gate, eventually, with_skills, working

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("duty", ["sweep", "reclaim_expired"])
@pytest.mark.parametrize("error", [RuntimeError("odd"), NotFound("none"), StoreUnavailable("away")])
async def test_duty_that_fails_is_repeated(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, error: Exception, duty: str
) -> None:
    failures = [error, error]
    call = getattr(type(swarm.board), duty)

    async def fail_twice(*arguments: object, **named: object) -> object:
        if failures:
            raise failures.pop()
        return await call(*arguments, **named)

    monkeypatch.setattr(type(swarm.board), duty, fail_twice)
    expected = 2 if isinstance(error, RuntimeError) else 0
    async with working(with_skills(swarm), faults=expected) as worker:
        await swarm.clock.advance(60 + SWEEPS_PER_RECLAIM * swarm.board.rules.lease_seconds)
        await swarm.submit(skill="noop")
        await eventually(swarm, lambda: worker.settled == 1, "working")
        assert not failures


async def test_unreadable_message_to_an_agent_is_put_aside(swarm: SwarmRig) -> None:
    bad = {"to_agent_id": "scout-1", "status": "new", "created_at": 1, "payload": 7}
    await swarm.store.commit([Create("agent_mailbox/bad", bad)])
    async with working(with_skills(swarm)):
        await swarm.clock.settle()
    data = (await swarm.store.get("agent_mailbox/bad")).data
    assert data["status"] == "read" and data["outcome"].startswith("refused: ")


async def test_output_folders_of_tasks_that_are_gone_are_removed_at_the_start(swarm: SwarmRig) -> None:
    folder = swarm.core.workdir / "outputs" / "gone"
    old = (swarm.clock.now() - timedelta(days=KEPT_DAYS + 1)).timestamp()
    folder.mkdir(parents=True)
    os.utime(folder, (old, old))

    async def is_removed() -> bool:
        return not folder.exists()

    async with working(with_skills(swarm)):
        await until(is_removed, seconds=PATIENCE_SECONDS, what="removing it")


async def test_worker_looks_for_old_output_folders_at_the_start_and_once_a_day(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[datetime] = []

    async def look(parts: SwarmParts) -> int:
        looks.append(parts.clock.now())
        return 0

    monkeypatch.setattr(upkeep, "remove_old_outputs", look)
    async with working(with_skills(swarm)):
        for count in (1, 2, 3):
            await swarm.clock.advance(1)
            assert len(looks) == count
            swarm.clock.stand_still(timedelta(days=1).total_seconds())


async def test_idle_worker_reclaims_each_lease_that_another_program_wrote(swarm: SwarmRig) -> None:
    async with working(with_skills(swarm)) as worker:
        for number in (1, 2, 3):
            lease = {"owner_agent_id": "other", "expires_at": swarm.clock.now() + timedelta(seconds=30)}
            task = {"objective": f"part {number}", "assigned_to": "scout", "skill": "noop", "status": "in_progress"}
            await swarm.store.commit([Create(f"agent_tasks/theirs-{number}", task | {"lease": lease})])
            await swarm.clock.advance(60 + SWEEPS_PER_RECLAIM * swarm.board.rules.lease_seconds)
            await eventually(swarm, lambda count=number: worker.settled == count, "reclaiming it")
            assert (await swarm.task(f"theirs-{number}")).status is TaskStatus.DONE


@pytest.mark.parametrize("state", ["idle", "working"])
async def test_agent_sends_heartbeats_at_the_interval_of_its_state(swarm: SwarmRig, state: str) -> None:
    settings, gate = swarm.core.settings.worker, Gate()
    every = settings.heartbeat_working_seconds if state == "working" else settings.heartbeat_idle_seconds
    async with working(with_skills(swarm, gate=gate)):
        if state == "working":
            await swarm.submit(skill="gate")
            await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.clock.advance(settings.heartbeat_idle_seconds)  # the pause that began before
        times: set[datetime] = set()
        for _ in range(int(6 * every)):
            await swarm.clock.advance(1)
            await swarm.clock.settle()
            beat = (await swarm.store.get("mcp_memory/status-scout-1")).data
            assert beat["status"] == state
            times.add(beat["created_at"])
        assert 5 <= len(times) <= 7
        gate.opened.set()


async def test_lease_of_work_in_progress_always_has_half_of_its_time_left(swarm: SwarmRig) -> None:
    gate, lifetime = Gate(), swarm.board.rules.lease_seconds
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        left: list[float] = []
        for _ in range(int(3 * lifetime)):
            await swarm.clock.advance(1)
            await swarm.clock.settle()
            lease = (await swarm.task(task.task_id)).lease
            assert lease is not None
            left.append((lease.expires_at - swarm.clock.now()).total_seconds())
        assert min(left) >= lifetime / 2
        gate.opened.set()
        await eventually(swarm, lambda: worker.settled == 1, "working")


async def test_expired_lease_is_reclaimed_in_time_although_the_store_refuses_every_heartbeat(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is no outage: the holders of other leases could renew them."""

    async def refuse(*arguments: object, **named: object) -> None:
        raise StoreError("refused")

    monkeypatch.setattr(type(swarm.core.heartbeats), "beat", refuse)
    task = await swarm.submit(skill="noop")
    await swarm.claim_one("agent-elsewhere")
    async with working(with_skills(swarm)):
        await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
        assert (await swarm.task(task.task_id)).status is TaskStatus.DONE


async def test_worker_does_not_sweep_shortly_before_the_next_task_is_due(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, sweep, times = await swarm.submit(skill="noop"), type(swarm.board).sweep, list[datetime]()
    await swarm.settle(await swarm.claim_one(), Retry("later", 20.0))
    due = (await swarm.task(task.task_id)).not_before
    assert due is not None

    async def note_time(*arguments: Any, **named: Any) -> Any:
        times.append(swarm.clock.now())
        return await sweep(*arguments, **named)

    monkeypatch.setattr(type(swarm.board), "sweep", note_time)
    async with working(with_skills(swarm)) as worker:
        await swarm.clock.advance(21)
        assert worker.settled == 1
    assert len(times) >= 2
    assert not [time for time in times if due - timedelta(seconds=1) < time < due]


async def test_holder_may_renew_after_an_outage_before_its_lease_is_reclaimed(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away for everybody: a lease that ran out meanwhile does not mean that its holder died."""
    rules = swarm.board.rules
    task = await swarm.submit(skill="noop")
    held = await swarm.claim_one("agent-elsewhere")
    away = [True]

    def unreachable_while_away(name: str) -> None:
        call = getattr(type(swarm.store), name)

        async def attempt(*arguments: Any, **named: Any) -> Any:
            if away:
                raise StoreUnavailable("away")
            return await call(*arguments, **named)

        monkeypatch.setattr(type(swarm.store), name, attempt)

    for name in ("get", "get_many", "query", "commit"):
        unreachable_while_away(name)

    async def crash(request: SkillRequest) -> SkillResult:
        raise ZeroDivisionError("by zero")

    async with working(with_skills(swarm, crash=crash)) as worker:
        for _ in range(int(2 * rules.lease_seconds)):
            await swarm.clock.advance(1)
        away.clear()
        await swarm.clock.advance(rules.renew_every_seconds / 4)
        await swarm.submit("another task", skill="crash")
        await eventually(swarm, lambda: worker.settled == 1, "pausing it, after which the worker sweeps")
        for _ in range(int(rules.renew_every_seconds / 2)):
            await swarm.clock.advance(1)
            await swarm.clock.settle()
        await swarm.board.renew(held)
        assert (await swarm.task(task.task_id)).epoch == held.epoch


async def test_holder_may_renew_after_everything_stood_still(swarm: SwarmRig) -> None:
    """A laptop sleeps for an hour: all processes wake up at once, and the lease has expired."""
    gate = Gate()
    core = with_skills(swarm, gate=gate)
    async with working(core, agent="holder"), working(core, agent="rival"):
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        for _ in range(5):
            await swarm.clock.advance(30)
            swarm.clock.stand_still(3600)
        await swarm.clock.advance(30)
        gate.opened.set()
        for _ in range(30):
            await swarm.clock.advance(1)
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.attempt, gate.began) == (TaskStatus.DONE, 0, 1)


async def test_lost_lease_counts_as_an_attempt_only_without_progress(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    attempts: list[int] = []
    for steps in (0, 1, 1, 0):
        held = await swarm.claim_one()
        journal = await swarm.journal(held)
        for number in range(steps):

            async def work() -> int:
                return 1

            await journal.steps.step(f"step {held.epoch}.{number}", None, work, idempotent=True)
        await swarm.clock.advance(200)
        await swarm.board.sweep("scout")
        attempts.append((await swarm.task(task.task_id)).attempt)
    assert attempts == [1, 1, 1, 2]


@pytest.mark.parametrize("how", ["deleted", "queued", "no lease"])
async def test_run_of_a_task_that_a_person_took_away_is_ended(swarm: SwarmRig, how: str) -> None:
    gate, began = Gate(), []

    async def noop(request: SkillRequest) -> SkillResult:
        began.append(request.task_id)
        if len(began) == 1:
            await gate(request)
        return SkillResult(summary="done")

    async with working(with_skills(swarm, noop=noop)) as worker:
        task = await swarm.submit(skill="noop")
        await eventually(swarm, lambda: bool(began), "starting")
        path, run = f"agent_tasks/{task.task_id}", f"agent_runs/{task.task_id}.1"
        held = worker.held.all()[0].lease
        journal = await swarm.journal(held)
        journal.note("began")
        await journal.flush()
        changes: dict[str, Any] = {"queued": {"status": "queued", "lease": None}, "no lease": {"lease": DELETE_FIELD}}
        await swarm.store.commit([Delete(path) if how == "deleted" else Update(path, changes[how])])
        for _ in range(90):
            await swarm.clock.advance(5)
        gate.opened.set()
        ended = (await swarm.store.get(run)).data or {}
        assert (ended["status"], bool(ended["ended_at"])) == ("timeout", True)
        if how != "deleted":
            assert (await swarm.task(task.task_id)).status is TaskStatus.DONE


async def test_heartbeat_never_looks_late_while_the_process_lives(swarm: SwarmRig) -> None:
    """An idle agent says at once that it works; one that became idle still keeps the time that it promised."""
    gate = Gate()

    async def state() -> str:
        [status] = await swarm.core.heartbeats.read_reported()
        return status.state_at(swarm.clock.now())

    async with working(with_skills(swarm, gate=gate)):
        await swarm.clock.advance(20)
        assert await state() == "idle"
        await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "working")
        await swarm.clock.settle()
        assert await state() == "working"
        await swarm.clock.advance(13)
        gate.opened.set()
        for _ in range(70):
            await swarm.clock.advance(1)
            assert await state() in ("working", "idle")
