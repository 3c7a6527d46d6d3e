"""A provider that asks for a long pause blocks tasks until then; it costs no attempt and repeats nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from tests.integration.test_thinking import Model, answers_so_far, logged, one_turn, submit, thinking
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


async def test_pause_that_the_provider_asks_for_blocks_the_task_until_then(swarm: SwarmRig, tmp_path: Path) -> None:
    model, refusals = Model(), [900.0] * 7  # more than a task has attempts
    asked: list[int] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        asked.append(answers_so_far(request))
        if answers_so_far(request) == 2 and refusals:
            return {"error": 429, "message": "quota", "retry_after": refusals.pop()}
        return model(request)

    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    while refusals:
        task = await one_turn(swarm, core)
        assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.RETRY_BACKOFF)
        assert task.attempt == 0, "a pause is no failed attempt"
        assert task.not_before == swarm.clock.now() + timedelta(seconds=900)
        assert "requests a pause until" in str(task.error)
        await swarm.clock.advance(901)
        await swarm.board.sweep("scout")
    task = await one_turn(swarm, core)
    assert task.status is TaskStatus.DONE
    assert logged(tmp_path) == ["0", "1", "2", "3", "4"]
    assert asked.count(2) == 8
    assert asked.count(0) == asked.count(1) == 1


async def test_other_tasks_are_blocked_without_a_call_while_a_provider_pauses(swarm: SwarmRig, tmp_path: Path) -> None:
    asked: list[int] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        asked.append(answers_so_far(request))
        return {"error": 429, "retry_after": 900}

    core = thinking(swarm, script, tmp_path)
    for _ in range(2):
        await submit(swarm, tmp_path, context={"number": len(asked)})
        task = await one_turn(swarm, core)
        assert task.status_reason is StatusReason.RETRY_BACKOFF
        assert task.not_before is not None and task.not_before > swarm.clock.now() + timedelta(seconds=890)
    assert asked == [0]
