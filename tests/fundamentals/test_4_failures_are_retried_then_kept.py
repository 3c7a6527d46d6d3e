"""Retries back off; a task that keeps failing ends as a dead letter, blocked with a reason, and is never lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Failed, Released, Retry, Snooze, Waiting
from fireswarm.contracts.swarm.task import NO_DEADLINE, StatusReason, TaskStatus
from fireswarm.errors import InvalidInput, NotFound, TerminalTask
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


async def test_retries_wait_longer_each_time_until_the_task_is_a_dead_letter(swarm: SwarmRig) -> None:
    task = await swarm.submit(max_attempts=3)
    pauses: list[float] = []
    for _ in range(2):
        await swarm.settle(await swarm.claim_one(), Retry("the disk hiccuped"))
        stored = await swarm.task(task.task_id)
        assert stored.status_reason is StatusReason.RETRY_BACKOFF
        assert stored.not_before is not None
        pauses.append((stored.not_before - swarm.clock.now()).total_seconds())
        assert (await swarm.board.sweep("scout")).queued == ()
        await swarm.clock.advance(pauses[-1])
        assert (await swarm.board.sweep("scout")).queued == (task.task_id,)
    assert 0.5 <= pauses[0] <= 1.0 <= pauses[1] <= 2.0
    await swarm.settle(await swarm.claim_one(), Retry("the disk hiccuped"))
    stored = await swarm.task(task.task_id)
    assert (stored.status_reason, stored.attempt) == (StatusReason.DEAD_LETTER, 3)
    assert "the disk hiccuped" in stored.summary


async def test_task_that_kills_its_workers_becomes_a_dead_letter(swarm: SwarmRig) -> None:
    task = await swarm.submit(max_attempts=3)
    for _ in range(3):
        await swarm.claim_one()
        await swarm.clock.advance(61)
        await swarm.board.sweep("scout")
    stored = await swarm.task(task.task_id)
    assert stored.status_reason is StatusReason.DEAD_LETTER
    assert "process died or hung" in (stored.error or "")


async def test_operator_retry_of_a_dead_letter_restores_all_attempts(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    await swarm.settle(await swarm.claim_one(), Failed("bad credentials"))
    assert (await swarm.task(task.task_id)).attempt == 1
    retried = await swarm.board.retry(task.task_id)
    assert (retried.status, retried.attempt, retried.error) == (TaskStatus.QUEUED, 0, None)


async def test_snooze_and_release_count_no_attempt(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    await swarm.settle(await swarm.claim_one(), Snooze(30, "the page is not there yet"))
    paused = await swarm.task(task.task_id)
    assert (paused.status_reason, paused.turn) == (StatusReason.PAUSED, 1)
    await swarm.clock.advance(30)
    await swarm.board.sweep("scout")
    await swarm.settle(await swarm.claim_one(), Released())
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.attempt, stored.turn) == (TaskStatus.QUEUED, 0, 1)


async def test_turns_are_counted_unless_they_have_not_begun(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    for turn_over, turns in ((True, 1), (True, 2), (False, 2)):
        await swarm.settle(await swarm.claim_one(), Snooze(30, "busy", turn_over=turn_over))
        assert (await swarm.task(task.task_id)).turn == turns
        await swarm.clock.advance(30)
        await swarm.board.sweep("scout")


async def test_pause_that_counts_no_attempt_ends_at_its_time(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    await swarm.settle(await swarm.claim_one(), Retry("the provider is busy", after_seconds=90.0, counts=False))
    await swarm.clock.advance(89)
    await swarm.board.sweep("scout")
    waiting = await swarm.task(task.task_id)
    assert (waiting.status_reason, waiting.attempt) == (StatusReason.RETRY_BACKOFF, 0)
    await swarm.clock.advance(1)
    await swarm.board.sweep("scout")
    assert (await swarm.task(task.task_id)).status is TaskStatus.QUEUED


async def test_sweep_after_an_outage_ends_pauses_and_reclaims_no_lease(swarm: SwarmRig) -> None:
    paused = await swarm.submit("paused")
    await swarm.settle(await swarm.claim_one(), Snooze(30, "the page is not there yet"))
    held = await swarm.submit("held")
    await swarm.claim_one()
    await swarm.clock.advance(61)
    assert (await swarm.board.sweep("scout", reclaim=False)).queued == (paused.task_id,)
    assert (await swarm.board.sweep("scout")).queued == (held.task_id,)


async def test_missed_deadline_of_a_blocked_task_is_its_reason(swarm: SwarmRig) -> None:
    task = await swarm.submit(deadline=swarm.clock.now() + timedelta(minutes=5))
    await swarm.settle(await swarm.claim_one(), Snooze(240, "the page is not there yet"))
    await swarm.clock.advance(301)
    await swarm.board.sweep("scout")
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.DEADLINE_EXCEEDED


async def test_a_missed_deadline_blocks_the_task(swarm: SwarmRig) -> None:
    task = await swarm.submit(deadline=swarm.clock.now() + timedelta(minutes=5))
    await swarm.clock.advance(300)
    assert (await swarm.board.sweep("scout")).blocked == (task.task_id,)
    stored = await swarm.task(task.task_id)
    assert stored.status_reason is StatusReason.DEADLINE_EXCEEDED
    lifted = await swarm.board.retry(task.task_id)
    assert (lifted.status, lifted.deadline) == (TaskStatus.QUEUED, NO_DEADLINE)


async def test_past_deadline_is_refused_unless_the_task_already_exists(swarm: SwarmRig) -> None:
    with pytest.raises(InvalidInput, match="the deadline, .* has passed: nothing was submitted"):
        await swarm.submit(deadline=swarm.clock.now())
    assert await swarm.board.list() == []
    due = swarm.clock.now() + timedelta(minutes=5)
    task = await swarm.submit(deadline=due)
    await swarm.clock.advance(301)
    assert (await swarm.submit(deadline=due)).task_id == task.task_id


async def test_task_with_a_past_deadline_is_not_started(swarm: SwarmRig) -> None:
    task = await swarm.submit(deadline=swarm.clock.now() + timedelta(minutes=5))
    await swarm.clock.advance(301)
    assert await swarm.claim() == []
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.DEADLINE_EXCEEDED


async def test_blocked_task_continues_after_a_valid_answer(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    questions = (
        Question(name="path", description="Which folder?"),
        Question(name="depth", description="", type="integer"),
    )
    await swarm.settle(await swarm.claim_one(), Waiting(StatusReason.INPUT_REQUIRED, "which folder?", questions))
    with pytest.raises(InvalidInput, match="path is missing"):
        await swarm.board.answer(task.task_id, {"depth": 2})
    with pytest.raises(InvalidInput, match="depth must be of type integer"):
        await swarm.board.answer(task.task_id, {"path": "/a", "depth": "two"})
    with pytest.raises(InvalidInput, match="colour is not an open question"):
        await swarm.board.answer(task.task_id, {"path": "/a", "depth": 2, "colour": "red"})
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.INPUT_REQUIRED
    await swarm.board.answer(task.task_id, {"path": "/a", "depth": 2})
    assert (await swarm.claim_one()).task.answers == {"path": "/a", "depth": 2}


async def test_each_turn_asks_its_questions_under_its_own_number(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    asks = Waiting(StatusReason.INPUT_REQUIRED, "which folder?", (Question(name="path", description="Which?"),))
    for turn in (1, 2, 3):
        await swarm.settle(await swarm.claim_one(), asks)
        asked = await swarm.task(task.task_id)
        assert (asked.turn, [question.id for question in asked.questions]) == (turn, [f"{turn}-1"])
        await swarm.board.answer(task.task_id, {f"{turn}-1": "/a"})


async def test_canceled_task_is_terminal(swarm: SwarmRig) -> None:
    task = await swarm.submit()
    assert await swarm.board.cancel(task.task_id) == [task.task_id]
    with pytest.raises(TerminalTask, match="cannot change any more"):
        await swarm.board.cancel(task.task_id)
    with pytest.raises(TerminalTask):
        await swarm.board.retry(task.task_id)
    with pytest.raises(NotFound, match="swarm tasks"):
        await swarm.board.cancel("ghost")
