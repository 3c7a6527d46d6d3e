"""Which task a time of a schedule has, and what holds it back: told by the tasks, not by what a process could note."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import DELETE_FIELD
from fireswarm.swarm.submission.submit_task import submit_task
from tests.support.schedules import MINUTE, document, edit, every_minute, occasions, reading, utc
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


async def fire_after(swarm: SwarmRig, minutes: float) -> None:
    swarm.clock.stand_still(minutes * MINUTE)
    await (await reading(swarm)).fire_once()


async def without_notes(swarm: SwarmRig, before: dict[str, Any]) -> None:
    """Leave the schedule as a process does that dies after it has submitted a task."""
    await edit(swarm, **{name: before.get(name, DELETE_FIELD) for name in ("next_at", "last_at", "last_task_id")})


async def test_a_run_by_hand_does_not_hide_the_task_that_still_works(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    await fire_after(swarm, 1)
    [timed] = await swarm.claim()
    by_hand = await swarm.client.schedules.run_now("report")
    [second] = await swarm.claim("agent-b")
    await swarm.settle(second)
    await fire_after(swarm, 1)
    assert f"that of the last time, {timed.task.task_id}, has not ended" in (await document(swarm))["note"]
    await swarm.settle(timed)
    await fire_after(swarm, 1)
    assert await occasions(swarm) == ["2026-01-01T00:01", "2026-01-01T00:03", "by hand at 2026-"]
    listed = await swarm.client.schedules.tasks("report")
    assert [task.task_id for task in listed][1:] == [by_hand.task_id, timed.task.task_id]
    assert len(await swarm.client.schedules.tasks("report", limit=1)) == 1


async def test_a_run_by_hand_holds_the_next_time_back(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    task_id = (await swarm.client.schedules.run_now("report")).task_id
    await fire_after(swarm, 1)
    assert f"that of the last time, {task_id}, has not ended" in (await document(swarm))["note"]


async def test_a_task_that_made_up_for_missed_times_is_known_although_nobody_noted_it(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    before = await document(swarm)
    await fire_after(swarm, 5)
    [task] = await swarm.client.tasks()
    await without_notes(swarm, before)
    await fire_after(swarm, 2)
    assert (await document(swarm))["last_task_id"] == task.task_id
    await (await reading(swarm)).fire_once()
    assert await occasions(swarm) == ["2026-01-01T00:05"]
    assert "has not ended (queued)" in (await document(swarm))["note"]


async def test_an_objective_edited_before_its_task_was_noted_gives_that_time_no_second_task(swarm: SwarmRig) -> None:
    await every_minute(swarm, overlap="allow")
    before = await document(swarm)
    await fire_after(swarm, 1)
    await without_notes(swarm, before)
    await edit(swarm, task={"objective": "write another one", "skill": "noop"})
    await fire_after(swarm, 0)
    assert await occasions(swarm) == ["2026-01-01T00:01"]
    await fire_after(swarm, 1)
    assert [task.objective for task in await swarm.client.schedules.tasks("report")] == [
        "write another one",
        "write it",
    ]


async def test_a_schedule_that_was_removed_and_set_again_waits_for_its_last_task(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    await fire_after(swarm, 1)
    await swarm.client.schedules.remove("report")
    await every_minute(swarm)
    await fire_after(swarm, 1)
    assert await occasions(swarm) == ["2026-01-01T00:01"]
    assert "has not ended (queued)" in (await document(swarm))["note"]


async def test_a_next_time_by_hand_in_the_past_is_moved_on(swarm: SwarmRig) -> None:
    await every_minute(swarm, overlap="allow")
    await fire_after(swarm, 2)
    await edit(swarm, next_at=utc("2025-12-31T00:00"))
    for _ in range(2):
        await fire_after(swarm, 0)
    assert await occasions(swarm) == ["2026-01-01T00:02"]
    assert (await document(swarm))["next_at"] == utc("2026-01-01T00:03")


async def test_a_task_of_another_session_with_the_key_of_a_schedule_is_none_of_its_tasks(swarm: SwarmRig) -> None:
    await every_minute(swarm)
    schedule = await swarm.client.schedules.get("report")
    foreign = schedule.spec_at(utc("2026-01-01T00:01")).model_copy(update={"session_hash": "other"})
    await submit_task(swarm.core, foreign)
    await fire_after(swarm, 1)
    [own] = await swarm.client.schedules.tasks("report")
    assert own.session_hash == schedule.session_hash and (await document(swarm))["last_task_id"] == own.task_id
