"""The board under a plan in rounds: conflicts, failures of the store, and messages that cannot be said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Delete, Update
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.board import rounds
from fireswarm.swarm.board.operator.say import MAX_SAID
from tests.integration.test_inputs import Expert, part, turn
from tests.integration.test_plan_rounds import fail, finish, root_of, start
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


async def wait_for_b(swarm: SwarmRig, folder: Path) -> str:
    """Let the plan's first task fail and its planner wait for the second; returns the planner's id."""
    await start(swarm, folder, part("a"), part("b", "predictor"))
    await fail(swarm, "a")
    root = await turn(swarm, folder, Expert(finish(wait=True)), "architect")
    assert root.status_reason is StatusReason.DELEGATING
    return root.task_id


async def failing(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> None:
    """Let the next commits fail."""
    real: Callable[..., Any] = swarm.store.commit
    left = list(errors)

    async def commit(writes: Any, **options: Any) -> Any:
        if left:
            raise left.pop(0)
        return await real(writes, **options)

    monkeypatch.setattr(swarm.store, "commit", commit)


async def test_planner_whose_child_failed_unseen_is_woken_despite_a_conflict(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await wait_for_b(swarm, tmp_path)
    held = await swarm.claim_one(role="predictor")
    await swarm.board.settle(held, Failed("b broke", StatusReason.ESCALATED))
    task = await swarm.task(root)
    assert (task.status, len(task.gave_up)) == (TaskStatus.QUEUED, 2)
    stored = await swarm.store.get(task_path(root))
    unseen = {"status": "blocked", "status_reason": "delegating", "waiting_on": 9, "gave_up": list(task.gave_up[:1])}
    await swarm.store.commit([Update(stored.path, unseen, stored.update_time)])
    await failing(swarm, monkeypatch, Conflict("changed"))
    assert await rounds.check_children(swarm.board, root)
    assert "failed" in (await swarm.task(root)).summary


async def test_sweep_wakes_a_planner_whose_check_after_the_handoff_was_lost(swarm: SwarmRig, tmp_path: Path) -> None:
    root = await wait_for_b(swarm, tmp_path)
    [b] = [task for task in await swarm.board.list() if task.plan_key == "b"]
    stored = await swarm.store.get(task_path(b.task_id))
    lost = {"status": "blocked", "status_reason": "dead_letter", "summary": "set by another program"}
    await swarm.store.commit([Update(stored.path, lost, stored.update_time)])
    await swarm.clock.advance(60)
    await swarm.board.sweep("architect")
    assert (await swarm.task(root)).status is TaskStatus.QUEUED


async def test_planner_that_is_gone_or_at_work_is_not_woken(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await wait_for_b(swarm, tmp_path)
    assert not await rounds.check_children(swarm.board, root), "b is at work"
    await swarm.settle(await swarm.claim_one(role="predictor"))
    assert not await rounds.check_children(swarm.board, root), "it is queued already"
    await swarm.store.commit([Delete(task_path(root))])
    assert not await rounds.check_children(swarm.board, root)


async def test_failure_of_the_store_after_a_handoff_leaves_the_check_to_the_sweep(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(board: Any, task_id: str) -> bool:
        raise StoreUnavailable("the store is down")

    monkeypatch.setattr(rounds, "check_children", down)
    root = await wait_for_b(swarm, tmp_path)
    monkeypatch.undo()
    await swarm.settle(await swarm.claim_one(role="predictor"))
    assert (await swarm.task(root)).status is TaskStatus.QUEUED


async def test_message_that_cannot_be_said_is_refused_with_the_reason(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    root = await root_of(swarm)
    [a] = [task for task in await swarm.board.list() if task.plan_key == "a"]
    with pytest.raises(InvalidInput, match="only a task that is done has a follow-up"):
        await swarm.board.go_on(root.task_id, "more")
    await turn(swarm, tmp_path, Expert("done"), "scout")
    with pytest.raises(InvalidInput, match="is part of a plan: say it to its objective"):
        await swarm.board.go_on(a.task_id, "more")
    stored = await swarm.store.get(task_path(root.task_id))
    await swarm.store.commit([Update(stored.path, {"said": ["x"] * MAX_SAID}, stored.update_time)])
    with pytest.raises(InvalidInput, match="the most it takes"):
        await swarm.board.say(root.task_id, "more")
    with pytest.raises(NotFound):
        await swarm.board.cancel("00000000-0000-0000-0000-000000000000", tree=True)


async def test_follow_up_with_the_same_key_and_message_with_the_same_id_are_made_once(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    task = await swarm.submit("x")
    for _ in range(2):
        await swarm.board.say(task.task_id, "look", "operator", "message-1")
    assert len((await swarm.task(task.task_id)).said) == 1
    await swarm.settle(await swarm.claim_one())
    first, second = [await swarm.board.go_on(task.task_id, "more", "key") for _ in range(2)]
    assert (first.task.task_id, first.created, second.created) == (second.task.task_id, True, False)
