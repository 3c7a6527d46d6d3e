"""The reason why a task does not move names what it waits for and the command or edit that moves it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.outcome import Handoff, Retry, Waiting
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.swarm.board.operator.explain import explain
from fireswarm.swarm.board.operator.stalls import find_stalls
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


async def why(swarm: SwarmRig, task_id: str) -> str:
    return await explain(swarm.board, await swarm.task(task_id))


async def test_queued_task_waits_for_an_agent_of_its_role(swarm: SwarmRig) -> None:
    task = await swarm.submit("look")
    assert await why(swarm, task.task_id) == "It waits for an agent of the role scout: `swarm agents` shows which run."


async def test_running_task_names_its_holder_and_the_end_of_its_lease(swarm: SwarmRig) -> None:
    task = await swarm.submit("look")
    await swarm.claim_one(agent="scout-7")
    lease = (await swarm.task(task.task_id)).lease
    assert lease is not None
    at = f"{lease.expires_at:%H:%M:%S} UTC"
    assert await why(swarm, task.task_id) == f"scout-7 works on it; its lease expires at {at} unless renewed."
    await swarm.clock.advance((lease.expires_at - swarm.clock.now()).total_seconds() + 5)
    assert await why(swarm, task.task_id) == f"Its holder's lease expired at {at}: any scout agent can take it over."


async def test_ended_task_never_changes_again(swarm: SwarmRig) -> None:
    task = await swarm.submit("look")
    await swarm.board.cancel(task.task_id)
    assert await why(swarm, task.task_id) == "It is canceled and cannot change any more."


async def test_asking_task_gives_the_command_with_the_names_of_its_questions(swarm: SwarmRig) -> None:
    task = await swarm.submit("dig")
    questions = (Question(name="where", description="Which side?"), Question(name="depth", description="How deep?"))
    await swarm.settle(await swarm.claim_one(), Waiting(StatusReason.INPUT_REQUIRED, "where and how deep?", questions))
    assert (
        await why(swarm, task.task_id) == f"It asks for input: `swarm answer {task.task_id[:8]} where=... depth=...`."
    )


async def test_command_with_an_id_of_hand_written_documents_is_quoted(swarm: SwarmRig) -> None:
    document = {"objective": "dig", "assigned_to": "scout", "status": "blocked"}
    await swarm.store.commit([Create("agent_tasks/a b's", document)])
    assert "`swarm retry 'a b'\"'\"'s'`" in await why(swarm, "a b's")


async def test_objective_that_needs_a_model_names_the_command_that_retries_it(swarm: SwarmRig) -> None:
    task = await swarm.submit("write a poem")
    await swarm.settle(await swarm.claim_one(), Waiting(StatusReason.NEEDS_MODEL, "Needs a model: set a key."))
    assert await why(swarm, task.task_id) == (f"Needs a model: set a key. Then run `swarm retry {task.task_id[:8]}`.")
    await swarm.board.retry(task.task_id)
    assert (await swarm.claim_one()).task.task_id == task.task_id


async def test_parent_names_its_unfinished_children_and_quotes_blocked_ones(swarm: SwarmRig) -> None:
    parent = await swarm.submit("plan", role="architect")
    held = await swarm.claim_one(role="architect")
    planned = tuple(PlannedTask(key=key, assigned_to="scout", objective=key) for key in ("one", "two"))
    await swarm.settle(held, Handoff(planned))
    child = await swarm.claim_one()
    await swarm.settle(child, Waiting(StatusReason.INPUT_REQUIRED, "north or south?"))
    told = await why(swarm, parent.task_id)
    assert told.startswith("It waits for 2 tasks: ")
    assert told.endswith(f"{child.task.task_id[:8]} is blocked: north or south?")


async def test_pause_and_failure_name_the_command_that_ends_them(swarm: SwarmRig) -> None:
    task = await swarm.submit("try", max_attempts=2)
    await swarm.settle(await swarm.claim_one(), Retry("the disk is full"))
    raw = await swarm.task(task.task_id)
    assert raw.not_before is not None
    told = f"It will be retried at {raw.not_before.isoformat()}; `swarm retry {task.task_id[:8]}` retries it now."
    assert await why(swarm, task.task_id) == told
    await swarm.clock.advance(3600)
    await swarm.board.sweep("scout")
    await swarm.settle(await swarm.claim_one(), Retry("the disk is full"))
    told = await why(swarm, task.task_id)
    assert told.startswith("It gave up: ") and "the disk is full" in told
    assert told.endswith(f"Fix the cause, then run `swarm retry {task.task_id[:8]}`.")


async def test_task_for_later_that_never_ran_starts_then(swarm: SwarmRig) -> None:
    start = swarm.clock.now() + timedelta(hours=1)
    task = await swarm.submit("later")
    await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", {"not_before": start})])
    assert await swarm.claim() == []
    told = f"It starts at {start.isoformat()}; `swarm retry {task.task_id[:8]}` starts it now."
    assert await why(swarm, task.task_id) == told


async def test_advice_stands_apart_from_a_traceback(swarm: SwarmRig) -> None:
    task = await swarm.submit("try", max_attempts=1)
    await swarm.settle(await swarm.claim_one(), Retry("the disk is full\nTraceback:\n  line 1\n"))
    told = await why(swarm, task.task_id)
    assert told.endswith(f"\n  line 1\nFix the cause, then run `swarm retry {task.task_id[:8]}`.")


@pytest.mark.parametrize(
    ("change", "fix"),
    [
        ({"status": "pending"}, "its status is 'pending', which no agent looks for: set it to queued"),
        ({"status": None}, "its status is None"),
        ({"assigned_to": "skout"}, "no role of this swarm has the name 'skout': set assigned_to"),
        ({"priority": 99}, "priority"),
        ({"status": "blocked"}, "it is blocked without a status_reason: set status to queued"),
        (
            {"status": "blocked", "status_reason": "paused", "not_before": "soon"},
            "its pause has no sweep_at, so no agent ends it: set status to queued",
        ),
    ],
)
async def test_task_that_no_agent_will_touch_is_listed_with_the_fix(
    swarm: SwarmRig, change: dict[str, Any], fix: str
) -> None:
    await swarm.submit("a good task")
    if "not_before" in change:
        change = change | {"not_before": swarm.clock.now() + timedelta(minutes=1)}
    data = {"assigned_to": "scout", "status": "queued", "objective": "count the files"} | change
    await swarm.store.commit([Create("agent_tasks/odd", data)])
    [stall] = await find_stalls(swarm.board)
    assert stall.path == "agent_tasks/odd" and fix in stall.reason


@pytest.mark.parametrize("missing", ["status", "assigned_to"])
async def test_task_without_status_or_role_is_listed(swarm: SwarmRig, missing: str) -> None:
    data = {"assigned_to": "scout", "status": "queued", "objective": "count the files"}
    del data[missing]
    await swarm.store.commit([Create("agent_tasks/odd", data)])
    [stall] = await find_stalls(swarm.board)
    assert f"it has no {missing}: set" in stall.reason


async def test_ended_tasks_and_waiting_tasks_are_no_stalls(swarm: SwarmRig) -> None:
    done = await swarm.submit("ended")
    await swarm.board.cancel(done.task_id)
    await swarm.store.commit([Merge(f"agent_tasks/{done.task_id}", {"assigned_to": "a role of before"})])
    await swarm.submit("first")
    assert await find_stalls(swarm.board) == []
