"""Tasks written in the Firebase console may be incomplete, malformed or duplicated; none of them is lost."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Create
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


async def write(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    await swarm.store.commit([Create(f"agent_tasks/{task_id}", {"assigned_to": "scout", "status": "queued", **fields})])


async def test_hand_written_task_gets_defaults_and_a_twin_that_does_its_work(swarm: SwarmRig) -> None:
    await write(swarm, "by-hand", objective="count the files", context={"path": "/a"})
    assert await swarm.claim() == []  # it has no priority, so the claim query cannot see it
    assert await swarm.board.admit_hand_written("scout") == 1
    assert await swarm.claim() == []  # now it is seen, and tied to the task that does its work
    [held] = await swarm.claim()
    await swarm.settle(held, done("12 files"))
    twin = await swarm.claim_one()
    assert (twin.task.task_id, twin.task.duplicate_of) == ("by-hand", held.task.task_id)


async def test_inputs_of_a_hand_written_task_reach_its_twin(swarm: SwarmRig) -> None:
    await write(swarm, "by-hand", objective="add", capabilities=[{"id": "test_math"}], instructions="Be brief.")
    await swarm.board.admit_hand_written("scout")
    await swarm.claim()
    [held] = await swarm.claim()
    assert [use.id for use in held.task.capabilities] == ["test_math"] and held.task.instructions == "Be brief."


async def test_two_documents_with_one_key_share_one_execution(swarm: SwarmRig) -> None:
    for task_id in ("twin-1", "twin-2"):
        await write(swarm, task_id, objective="count the files", session_hash="s1")
    await swarm.board.admit_hand_written("scout")
    assert await swarm.claim(wanted=5) == []
    assert await swarm.claim(wanted=5) != []
    tasks = {task.task_id: task for task in await swarm.board.list()}
    assert len(tasks) == 3
    worker = next(task for task in tasks.values() if task.duplicate_of is None)
    assert {tasks[name].duplicate_of for name in ("twin-1", "twin-2")} == {worker.task_id}
    assert {tasks[name].status_reason for name in ("twin-1", "twin-2")} == {StatusReason.DEPENDENCIES}


async def test_twin_of_a_submitted_task_waits_for_it(swarm: SwarmRig) -> None:
    original = await swarm.submit("count the files")
    await write(swarm, "twin", objective="count the files", session_hash="s1", priority=9)
    await swarm.board.admit_hand_written("scout")
    assert await swarm.claim() == []  # the twin is ahead, and is tied to the original
    [held] = await swarm.claim(wanted=5)
    assert held.task.task_id == original.task_id
    assert (await swarm.task("twin")).duplicate_of == original.task_id


async def test_malformed_task_is_blocked_and_names_its_invalid_fields(swarm: SwarmRig) -> None:
    await write(swarm, "broken", objective="x", priority="urgent", deadline="soon")
    await swarm.claim()
    await swarm.board.admit_hand_written("scout")
    raw = await swarm.raw("broken")
    assert (raw["status"], raw["status_reason"]) == (TaskStatus.BLOCKED, StatusReason.DEAD_LETTER)
    assert "priority" in raw["summary"]
    assert "deadline" in raw["summary"]
    assert raw["objective"] == "x"
