"""A full queue refuses new work, and a task of low priority is worked on although urgent ones keep coming."""

from __future__ import annotations

import pytest

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import QueueFull
from fireswarm.swarm.board import BoardRules
from fireswarm.swarm.worker import mail, work_by_mail
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.working import work_message

pytestmark = pytest.mark.anyio


async def test_full_queue_refuses_a_new_task_and_returns_one_submitted_before() -> None:
    async with open_test_swarm(rules=BoardRules(max_queued=3)) as swarm:
        first = [await swarm.submit(f"task {number}") for number in range(3)]
        with pytest.raises(QueueFull, match=r"3 or more tasks wait for a scout agent \(queue.max_queued\)"):
            await swarm.submit("one more")
        assert (await swarm.submit("task 0")).task_id == first[0].task_id
        await swarm.submit("of another role", role="memory")
        await swarm.claim_one()
        assert (await swarm.submit("one more")).status is TaskStatus.QUEUED


async def test_plan_is_created_whatever_the_queue() -> None:
    async with open_test_swarm(rules=BoardRules(max_queued=1)) as swarm:
        await swarm.submit("plan", role="architect")
        held = await swarm.claim_one(role="architect")
        plan = tuple(PlannedTask(key=key, assigned_to="scout", objective=key) for key in ("a", "b", "c"))
        await swarm.settle(held, Handoff(plan))
        assert len(await swarm.board.list(status="queued")) == 3


async def test_message_to_a_role_with_a_full_queue_is_answered_with_a_refusal() -> None:
    async with open_test_swarm(rules=BoardRules(max_queued=1)) as swarm:
        blocker = await swarm.submit("first")
        await swarm.core.mailbox.send(work_message(), "architect-1", "scout", sender_role="architect")
        message = await swarm.store.get("agent_mailbox/m1")
        await mail.act_on(swarm.core, "scout", message, work_by_mail.create_work)
        assert [task.task_id for task in await swarm.board.list()] == [blocker.task_id]
        data = (await swarm.store.get("agent_mailbox/m1")).data
        assert "refused: 1 or more tasks wait for a scout agent" in data["outcome"]


@pytest.mark.parametrize(("factor", "commits"), [(1.0, 1), (64.0, 3)])
async def test_tasks_are_claimed_in_one_commit_unless_other_workers_win_races(
    swarm: SwarmRig, factor: float, commits: int
) -> None:
    for number in range(3):
        await swarm.submit(f"task {number}")
    claimer = swarm.board.claimer("scout", "agent-a")
    claimer.contention.factor = factor
    claimed = await claimer.claim(3)
    assert (len(claimed), len({str(held.version) for held in claimed})) == (3, commits)


@pytest.mark.parametrize("factor", [1.0, 64.0])
async def test_task_of_low_priority_is_claimed_although_urgent_ones_keep_coming(swarm: SwarmRig, factor: float) -> None:
    low = await swarm.submit("low", priority=1)
    claimer = swarm.board.claimer("scout", "agent-a")
    claimed: list[str] = []
    for number in range(40):
        await swarm.submit(f"urgent {number}", priority=10)
        await swarm.clock.advance(30)
        claimer.contention.factor = factor
        claimed += [held.task.task_id for held in await claimer.claim(1)]
        if low.task_id in claimed:
            break
    waited = len(claimed) * 30
    assert low.task_id in claimed and waited >= swarm.board.rules.aging_seconds


async def test_urgent_tasks_come_first_while_no_task_has_waited_long(swarm: SwarmRig) -> None:
    for number in range(8):
        await swarm.submit(f"low {number}", priority=1)
    for number in range(8):
        await swarm.submit(f"urgent {number}", priority=10)
    claimer = swarm.board.claimer("scout", "agent-a")
    claimed = [held.task.priority for _ in range(16) for held in await claimer.claim(1)]
    assert claimed == [10] * 8 + [1] * 8


async def test_claimer_takes_the_head_of_the_queue_again_when_no_more_races_are_lost(swarm: SwarmRig) -> None:
    claimer = swarm.board.claimer("scout", "agent-a")
    claimer.contention.learn(0, 1)  # a lost race
    assert claimer.contention.contended
    for number in range(100):
        await swarm.submit(f"task {number}")
        [held] = await claimer.claim(1)
        await swarm.settle(held)
    assert not claimer.contention.contended
    for number in range(3):
        await swarm.submit(f"later {number}")
        await swarm.clock.advance(1)
    heads = [(await claimer.claim(1))[0].task.objective for _ in range(3)]
    assert heads == ["later 0", "later 1", "later 2"], "the oldest first"


async def test_each_task_is_in_the_slice_of_some_of_many_idle_agents(swarm: SwarmRig) -> None:
    tasks = {(await swarm.submit(f"task {number}")).task_id for number in range(20)}
    seen: set[str] = set()
    for number in range(200):
        query = swarm.board.claimer("scout", f"agent-{number}").query_to_listen(24)
        seen |= {snapshot.id for snapshot in await swarm.store.query(query)}
    assert seen == tasks
