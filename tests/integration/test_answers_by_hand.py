"""A user answers a task in the Firebase console by editing ``answers`` and setting ``status`` to queued."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Update
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.parts import SwarmParts
from tests.support.swarm import SwarmRig
from tests.support.talking import one_turn, open_talking

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[tuple[SwarmRig, SwarmParts]]:
    async with open_talking(tmp_path) as opened:
        yield opened


async def edit(swarm: SwarmRig, task: Task, **fields: Any) -> None:
    """Write only the given fields, without a version check, as the console does."""
    await swarm.store.commit([Update(task_path(task.task_id), fields)])


async def asked(swarm: SwarmRig, core: SwarmParts, **fields: Any) -> Task:
    await swarm.submit(skill="survey", **fields)
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.INPUT_REQUIRED
    return task


async def test_answers_written_with_status_queued_resume_the_task(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    task = await asked(swarm, core)
    await edit(swarm, task, answers={"where": "north"}, status="queued")
    task = await one_turn(swarm, core)
    assert [question.name for question in task.questions] == ["depth"], "the first one was taken"
    await edit(swarm, task, answers={"where": "north", "depth": 7}, status="queued")
    task = await one_turn(swarm, core)
    assert task.result is not None and task.result.summary == "north 7, turns [1, 2, 3]"
    assert (task.questions, task.turn) == ((), 2)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"answers": {"where": "east"}}, "'east' is not one of"),
        ({"answers": {"where": 3}}, "where must be of type string"),
        ({"answers": {"were": "north"}}, "where is missing (Which side?)"),
        ({"answers": {"where": "north", "depth": 500}}, "500 is greater than the maximum of 100"),
        ({}, "where is missing"),
    ],
)
async def test_invalid_answers_cost_no_turn_and_are_explained_in_the_summary(
    written: dict[str, Any], told: str, talking: tuple[SwarmRig, SwarmParts]
) -> None:
    swarm, core = talking
    task = await asked(swarm, core)
    await edit(swarm, task, **written, status="queued")
    assert await swarm.claim() == []
    task = await swarm.task(task.task_id)
    assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.INPUT_REQUIRED)
    assert told in task.summary and "Correct answers, then set status to queued" in task.summary
    assert (task.answers, task.epoch, task.turn) == (written.get("answers", {}), 1, 1), "what was written stays"
    assert [question.name for question in task.questions] == ["where"]
    await edit(swarm, task, answers={"where": "south"}, status="queued")
    task = await one_turn(swarm, core)
    assert [question.name for question in task.questions] == ["depth"]


async def test_invalid_answer_can_be_corrected_with_the_answer_command(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    task = await asked(swarm, core)
    await edit(swarm, task, answers={"where": "east"}, status="queued")
    assert await swarm.claim() == []
    await swarm.board.answer(task.task_id, {"where": "south"})
    assert (await one_turn(swarm, core)).answers == {"where": "south"}


async def test_answers_that_are_not_a_map_dead_letter_the_task_until_corrected(
    talking: tuple[SwarmRig, SwarmParts],
) -> None:
    swarm, core = talking
    task = await asked(swarm, core)
    await edit(swarm, task, answers="north", status="queued")
    assert await swarm.claim() == []
    raw = await swarm.raw(task.task_id)
    assert raw["status_reason"] == StatusReason.DEAD_LETTER and "answers" in raw["summary"]
    await edit(swarm, task, answers={"where": "east"}, status="queued")
    assert await swarm.claim() == [], "a document that was malformed is still held to its questions"
    await edit(swarm, task, answers={"where": "north"}, status="queued")
    assert [question.name for question in (await one_turn(swarm, core)).questions] == ["depth"]


async def test_broken_answer_schema_blocks_its_task_but_not_the_role(
    talking: tuple[SwarmRig, SwarmParts],
) -> None:
    swarm, core = talking
    task = await asked(swarm, core)
    await edit(swarm, task, answer_schema={"type": "nonsense"}, answers={"where": "north"}, status="queued")
    other = await swarm.submit("another", skill="resting", context={"depth": 1})
    [held] = await swarm.claim(wanted=2)
    assert held.task.task_id == other.task_id
    assert "is not a valid JSON Schema" in (await swarm.task(task.task_id)).summary


async def test_a_retry_after_the_deadline_asks_again_without_a_turn(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    task = await asked(swarm, core, deadline=swarm.clock.now() + timedelta(seconds=60))
    await swarm.clock.advance(61)
    await swarm.board.sweep("scout")
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.DEADLINE_EXCEEDED
    await swarm.board.retry(task.task_id)
    assert await swarm.claim() == []
    await swarm.board.answer(task.task_id, {"where": "north"})
    assert [question.name for question in (await one_turn(swarm, core)).questions] == ["depth"]
