"""Schedules: each time has its task once, through crashes, several processes, missed times and edits by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import anyio
import pytest

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.ports import DELETE_FIELD, Usage, Write
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.errors import InvalidInput, StoreUnavailable
from fireswarm.storage.documents.paths import SCHEDULES, TASKS
from fireswarm.swarm.schedules.duty import LOOK_SECONDS, ScheduleDuty
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.schedules import (
    MINUTE,
    by_hand,
    document,
    edit,
    end_tasks,
    every_minute,
    occasions,
    reading,
    settled,
    utc,
)
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.working import working

pytestmark = pytest.mark.anyio


class Killed(BaseException):
    """The process ends here."""


async def test_a_schedule_submits_its_task_at_each_of_its_times(swarm: SwarmRig) -> None:
    await swarm.client.schedules.set(
        "report", "*/20 1 * * 4", "write it", role="scout", skill="noop", timezone="Europe/Berlin", priority=8
    )
    async with working(swarm.core) as worker:
        await swarm.clock.advance(50 * MINUTE)  # of Thursday, 2026-01-01, 01:00 in Berlin
        await settled(swarm, worker, 2)
    assert await occasions(swarm) == ["2026-01-01T00:20", "2026-01-01T00:40"]
    tasks = await swarm.client.tasks()
    assert {(task.objective, task.priority, task.status.value) for task in tasks} == {("write it", 8, "done")}
    stored = await swarm.client.schedules.get("report")
    assert stored.next_at == utc("2026-01-08T00:00")
    assert stored.last_at == utc("2026-01-01T00:40")
    assert stored.last_task_id in {task.task_id for task in tasks}
    assert stored.note == ""


async def test_several_processes_submit_one_task(both: SwarmRig) -> None:
    swarm = both
    await every_minute(swarm, overlap="allow")
    start = swarm.clock.now()

    async def moved_on() -> bool:
        return (await document(swarm))["next_at"] > swarm.clock.now()

    async with working(swarm.core), working(swarm.core, agent="scout-2"), working(swarm.core, agent="scout-3"):
        for _ in range(3):  # the emulator answers in real time, the clock is virtual
            await swarm.clock.advance(MINUTE)
            await until(moved_on, seconds=PATIENCE_SECONDS, what="the next time")
    assert await occasions(swarm) == [f"{start + timedelta(minutes=1 + number):%Y-%m-%dT%H:%M}" for number in range(3)]


async def test_two_processes_that_read_the_same_schedule_submit_one_task(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    first, second = await reading(swarm), await reading(swarm)
    swarm.clock.stand_still(MINUTE)
    await first.fire_once()
    await second.fire_once()
    assert await occasions(swarm) == ["2026-01-01T00:01"]
    assert (await document(swarm))["next_at"] == utc("2026-01-01T00:02")


async def test_a_process_killed_at_any_commit_leaves_one_task_for_each_time(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, made, number, after = swarm.store.commit, 0, 0, False

    async def dying(writes: Sequence[Write], **options: Any) -> Any:
        nonlocal made
        made += 1
        if made == number and not after:
            raise Killed
        done = await commit(writes, **options)
        if made == number:
            raise Killed
        return done

    for number, after in itertools.product((1, 2), (False, True)):
        await every_minute(swarm)
        swarm.clock.stand_still(MINUTE)
        process, survivor = await reading(swarm), await reading(swarm)
        made = 0
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(swarm.store, "commit", dying)
            await process.fire_once()
        for _ in range(2):
            await survivor.fire_once()
            survivor = await reading(swarm)
        at = f"{swarm.clock.now():%Y-%m-%dT%H:%M}"
        assert (await occasions(swarm)).count(at) == 1, (number, after)
        stored = await document(swarm)
        assert stored["next_at"] == swarm.clock.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
        assert stored["last_task_id"] in {task.task_id for task in await swarm.client.tasks(status="queued")}
        await end_tasks(swarm)
    assert len(await occasions(swarm)) == 4


async def test_a_time_that_a_killed_process_did_not_note_is_noted_by_the_next_one(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    before = await document(swarm)
    swarm.clock.stand_still(MINUTE)
    await (await reading(swarm)).fire_once()
    first = (await document(swarm))["last_task_id"]
    await edit(swarm, **{name: before.get(name, DELETE_FIELD) for name in ("next_at", "last_at", "last_task_id")})
    swarm.clock.stand_still(MINUTE)
    for _ in range(2):
        await (await reading(swarm)).fire_once()
    stored = await document(swarm)
    assert await occasions(swarm) == ["2026-01-01T00:01"]
    assert stored["last_task_id"] == first
    assert f"that of the last time, {first}, has not ended (queued)" in stored["note"]


async def test_missed_times_have_one_task_together(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    swarm.clock.stand_still(3 * 24 * 60 * MINUTE)
    async with working(swarm.core):
        await swarm.clock.settle()
    assert await occasions(swarm) == ["2026-01-04T00:00"]
    assert (await document(swarm))["note"] == "more than 1,000 earlier times were left out: nothing ran then"
    await swarm.client.schedules.set("daily", "30 5 * * *", "sweep", role="scout", skill="noop")
    swarm.clock.stand_still(3 * 24 * 60 * MINUTE)
    async with working(swarm.core):
        await swarm.clock.settle()
    assert (await document(swarm, "daily"))["note"] == "2 earlier times were left out: nothing ran then"
    assert "2026-01-06T05:30" in await occasions(swarm)


@pytest.mark.parametrize("overlap", ["skip", "allow"])
async def test_a_time_is_left_out_while_the_last_task_works(swarm: SwarmRig, overlap: str) -> None:
    await every_minute(swarm, overlap=overlap)
    for _ in range(2):
        swarm.clock.stand_still(MINUTE)
        await (await reading(swarm)).fire_once()
    if overlap == "allow":
        assert await occasions(swarm) == ["2026-01-01T00:01", "2026-01-01T00:02"]
        return
    assert await occasions(swarm) == ["2026-01-01T00:01"]
    assert (await document(swarm))["note"].startswith("no task at 2026-01-01 00:02 UTC: that of the last time, ")
    await end_tasks(swarm)
    swarm.clock.stand_still(MINUTE)
    await (await reading(swarm)).fire_once()
    assert await occasions(swarm) == ["2026-01-01T00:01", "2026-01-01T00:03"]
    assert (await document(swarm))["note"] == ""


async def test_a_task_that_was_given_up_holds_no_time_back(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    swarm.clock.stand_still(MINUTE)
    await (await reading(swarm)).fire_once()
    await swarm.settle(await swarm.claim_one(), Failed("it broke", StatusReason.DEAD_LETTER))
    swarm.clock.stand_still(MINUTE)
    await (await reading(swarm)).fire_once()
    assert await occasions(swarm) == ["2026-01-01T00:01", "2026-01-01T00:02"]


async def test_a_schedule_written_by_hand_gets_its_time(swarm: SwarmRig) -> None:
    await by_hand(swarm, "hand", cron="*/5 * * * *", task={"objective": "count", "skill": "noop"}, timezone=None)
    async with working(swarm.core) as worker:
        await swarm.clock.advance(5 * MINUTE)
        await settled(swarm, worker, 1)
        await edit(swarm, "hand", cron="0 9 * * *", timezone="Asia/Tokyo")
        await swarm.clock.settle()
    assert (await document(swarm, "hand"))["next_at"] == utc("2026-01-02T00:00")
    [task] = await swarm.client.tasks()
    assert (task.objective, task.session_hash, task.assigned_to) == ("count", "console", "scout")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"cron": "at noon"}, "cron: Value error, has to be minute, hour, day of month, month and day of week"),
        ({"cron": "61 * * * *"}, "'61 * * * *' is no cron expression: bad minute"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": 6}, "cron: Input should be a valid string"),
        ({"timezone": "Berlin"}, "there is no time zone 'Berlin': give an IANA name such as Europe/Berlin"),
        ({"timezone": "../etc/passwd"}, "there is no time zone"),
        ({"timezone": "Europe"}, "there is no time zone"),
        ({"task": None}, "task: Field required"),
        ({"task": {"objektive": "x"}}, "its task: objective: Field required; objektive: Extra inputs"),
        ({"task": {"objective": "x", "assigned_to": "memory"}}, "task.assigned_to cannot be scheduled: set it beside"),
        ({"task": {"objective": "x", "deadline": "2027-01-01"}}, "task.deadline cannot be scheduled: it makes no"),
        ({"overlap": "maybe"}, "overlap: Input should be 'skip' or 'allow'"),
        ({"paused": "perhaps"}, "paused: Input should be a valid boolean"),
    ],
)
async def test_a_malformed_schedule_is_set_aside_and_stops_no_other(
    swarm: SwarmRig, fields: Mapping[str, Any], told: str
) -> None:
    await by_hand(swarm, "odd", **{"cron": "* * * * *", "task": {"objective": "x"}, **fields})
    await every_minute(swarm)
    async with working(swarm.core) as worker:
        await swarm.clock.advance(MINUTE)
        await settled(swarm, worker, 1)
        odd = await document(swarm, "odd")
        assert odd["note"].startswith("set aside: agent_schedules/odd is not a schedule: ")
        assert told in odd["note"]
        [only] = await swarm.client.schedules.list()
        assert only.schedule_id == "report"
        with pytest.raises(InvalidInput, match="is not a schedule"):
            await swarm.client.schedules.pause("odd")
        good = {"cron": "* * * * *", "task": {"objective": "x", "skill": "noop"}, "timezone": "UTC", "overlap": "skip"}
        await edit(swarm, "odd", **good, paused=False, next_at=DELETE_FIELD)
        await swarm.clock.settle()
        assert (await document(swarm, "odd"))["note"] == ""


async def test_a_document_of_a_newer_version_is_left_alone(swarm: SwarmRig) -> None:
    await by_hand(swarm, "new", cron="* * * * *", task={"objective": "x"}, schema_version=99, rrule="FREQ=DAILY")
    before = await document(swarm, "new")
    async with working(swarm.core):
        await swarm.clock.advance(2 * MINUTE)
    assert await document(swarm, "new") == before
    with pytest.raises(InvalidInput, match="schema_version 99"):
        await swarm.client.schedules.set("new", "0 6 * * *", "x", role="scout")


async def test_a_task_that_cannot_be_submitted_is_named_and_the_next_time_comes(swarm: SwarmRig) -> None:
    await by_hand(swarm, "report", cron="* * * * *", task={"objective": "x", "skill": "no-such"})
    async with working(swarm.core):
        await swarm.clock.advance(MINUTE)
        stored = await document(swarm)
        assert stored["note"] == "no task: there is no skill 'no-such'; omit it to let the role choose one"
        assert stored["next_at"] == utc("2026-01-01T00:02")
        await edit(swarm, task={"objective": "x", "skill": "noop"})
        await swarm.clock.advance(MINUTE)
    assert await occasions(swarm) == ["2026-01-01T00:02"]


async def test_a_schedule_waits_while_the_store_is_away(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    failures, commit = [StoreUnavailable("away")] * 3, type(swarm.store).commit

    async def fail_thrice(store: Any, writes: Sequence[Write], **more: Any) -> Any:
        if failures and any(write.path.startswith((SCHEDULES, TASKS)) for write in writes):
            raise failures.pop()
        return await commit(store, writes, **more)

    await every_minute(swarm)
    monkeypatch.setattr(type(swarm.store), "commit", fail_thrice)
    async with working(swarm.core) as worker:
        await swarm.clock.advance(MINUTE + 30)
        await settled(swarm, worker, 1)
    assert not failures
    assert await occasions(swarm) == ["2026-01-01T00:01"]


class ListeningClock(VirtualClock):
    """Notes how long somebody waits with a limit."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def wait(self, event: anyio.Event, seconds: float | None) -> bool:
        if seconds is not None:
            self.waits.append(seconds)
        return await super().wait(event, seconds)


async def test_a_machine_that_was_suspended_looks_at_its_clock_within_a_minute() -> None:
    """Timers of a suspended machine stand still, so one wait until tomorrow would end hours too late."""
    clock = ListeningClock()
    async with open_test_swarm(clock=clock) as swarm:
        await by_hand(swarm, "report", cron="0 6 * * *", task={"objective": "x", "skill": "noop"})
        duty = ScheduleDuty(swarm.core, "scout")
        async with anyio.create_task_group() as group:
            group.start_soon(duty.watch)
            group.start_soon(duty.fire)
            await clock.settle()
            assert clock.waits and max(clock.waits) <= LOOK_SECONDS
            clock.stand_still(8 * 60 * MINUTE)
            await clock.advance(LOOK_SECONDS)
            group.cancel_scope.cancel()
        assert await occasions(swarm) == ["2026-01-01T06:00"]


async def test_idle_schedules_cost_nothing(swarm: SwarmRig) -> None:
    await swarm.client.schedules.set("report", "0 6 * * *", "x", role="scout")
    await swarm.client.schedules.set("paused", "* * * * *", "x", role="scout", paused=True)
    duty = ScheduleDuty(swarm.core, "scout")
    async with anyio.create_task_group() as group:
        group.start_soon(duty.watch)
        group.start_soon(duty.fire)
        await swarm.clock.settle()
        before = swarm.store.usage.copy()
        await swarm.clock.advance(5 * 60 * MINUTE)
        assert swarm.store.usage.minus(before) == Usage()
        group.cancel_scope.cancel()


async def test_a_next_time_that_is_no_time_is_set_anew(swarm: SwarmRig) -> None:
    await by_hand(swarm, "report", cron="* * * * *", task={"objective": "x", "skill": "noop"}, next_at="soon")
    async with working(swarm.core) as worker:
        await settled(swarm, worker, 1)
    assert await occasions(swarm) == ["2026-01-01T00:01"]
