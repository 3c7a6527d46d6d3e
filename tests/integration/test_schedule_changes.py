"""Schedules are set, paused, run and removed by the client, which refuses what could not run."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.redaction import Redactor
from tests.support.schedules import (
    MINUTE,
    document,
    edit,
    every_minute,
    occasions,
    settled,
    utc,
)
from tests.support.swarm import SwarmRig
from tests.support.working import working

pytestmark = pytest.mark.anyio


async def test_pause_and_resume_make_up_for_nothing(swarm: SwarmRig) -> None:
    schedules = swarm.client.schedules
    await every_minute(swarm)
    async with working(swarm.core) as worker:
        paused = await schedules.pause("report")
        assert paused.paused and paused.next_at is None
        await swarm.clock.advance(5 * MINUTE)
        assert await occasions(swarm) == []
        await schedules.resume("report")
        await swarm.clock.advance(MINUTE)
        await settled(swarm, worker, 1)
    assert await occasions(swarm) == ["2026-01-01T00:06"]
    assert (await schedules.set("report", "0 6 * * *", "x", role="scout", paused=True)).next_at is None
    assert (await schedules.set("report", "0 7 * * *", "y", role="scout")).paused


async def test_a_secret_in_a_task_is_not_stored(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2hunter2"
    monkeypatch.setattr(swarm.store, "_redact", Redactor([secret]))
    await swarm.client.schedules.set("report", "0 6 * * *", f"use {secret}", role="scout")
    assert (await document(swarm))["task"] == {"objective": "use [redacted]"}


async def test_a_far_next_time_by_hand_ends_when_the_schedule_is_set_again(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    await edit(swarm, next_at=utc("2035-12-30T00:00"))
    again = await swarm.client.schedules.set("report", "* * * * *", "write it", role="scout", skill="noop")
    assert again.next_at == utc("2026-01-01T00:01")


async def test_a_context_that_no_task_may_have_is_refused_at_once(swarm: SwarmRig) -> None:
    with pytest.raises(InvalidInput, match="the context has 300,008 bytes"):
        await swarm.client.schedules.set("report", "* * * * *", "x", role="scout", context={"a": "x" * 300_000})


async def test_run_now_submits_a_task_and_leaves_the_times(swarm: SwarmRig) -> None:
    schedules = swarm.client.schedules
    await every_minute(swarm)
    await schedules.pause("report")
    first = await schedules.run_now("report")
    swarm.clock.stand_still(1)
    second = await schedules.run_now("report")
    assert first.created and second.created and first.task_id != second.task_id
    stored = await schedules.get("report")
    assert (stored.last_task_id, stored.next_at) == (second.task_id, None)


async def test_setting_again_keeps_the_next_time_and_the_last_task(swarm: SwarmRig) -> None:
    schedules = swarm.client.schedules
    await every_minute(swarm)
    task = await schedules.run_now("report")
    swarm.clock.stand_still(MINUTE)
    again = await schedules.set("report", " *  * * * *", "write it better", role="scout", overlap="allow")
    assert (again.next_at, again.last_task_id) == (utc("2026-01-01T00:01"), task.task_id)
    assert again.task == {"objective": "write it better"}
    moved = await schedules.set("report", "0 6 * * *", "write it better", role="scout", context={"a": [1, {"b": 2}]})
    assert moved.next_at == utc("2026-01-01T06:00")
    assert moved.spec_at(utc("2026-01-01T06:00")).context == {"a": [1, {"b": 2}]}
    await schedules.remove("report")
    for call in (schedules.get, schedules.pause, schedules.remove, schedules.run_now):
        with pytest.raises(NotFound, match="there is no schedule report"):
            await call("report")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"cron": "0 6 * * 1-9"}, "cron: .*bad day-of-week"),
        ({"cron": "0 0 6 * * *"}, "cron: .*has to be minute, hour"),
        ({"timezone": "Mars/Base"}, "there is no time zone 'Mars/Base'"),
        ({"timezone": "localtime"}, "there is no time zone"),
        ({"overlap": "no"}, "overlap: Input should be 'skip' or 'allow'"),
        ({"skill": "no-such"}, "there is no skill 'no-such'"),
        ({"role": "nobody"}, "there is no role 'nobody'"),
        ({"deadline": utc("2027-01-01T00:00")}, "deadline cannot be scheduled"),
        ({"depends_on": ("a",)}, "depends_on cannot be scheduled"),
        ({"session_hash": "other"}, "session default has a schedule report"),
    ],
)
async def test_a_schedule_that_could_not_run_is_refused(swarm: SwarmRig, wrong: dict[str, Any], told: str) -> None:
    await swarm.client.schedules.set("report", "0 6 * * *", "x", role="scout")
    before = await document(swarm)
    fields: dict[str, Any] = {"cron": "0 7 * * *", "objective": "y", "role": "scout"} | wrong
    with pytest.raises(InvalidInput, match=told):
        await swarm.client.schedules.set("report", **fields)
    assert await document(swarm) == before


async def test_a_spec_is_scheduled_with_its_session_and_role(swarm: SwarmRig) -> None:
    spec = TaskSpec(objective="x", assigned_to="memory", session_hash="s9", created_by="api", priority=9)
    stored = await swarm.client.schedules.set("report", "0 6 * * *", spec)
    assert (stored.session_hash, stored.assigned_to, stored.created_by) == ("s9", "memory", "api")
    assert stored.spec_at(utc("2026-01-01T06:00")).priority == 9
    with pytest.raises(InvalidInput, match="a TaskSpec has all fields"):
        await swarm.client.schedules.set("report", "0 6 * * *", spec, role="scout")
