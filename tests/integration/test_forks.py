"""A fork has the steps of its origin before one answer of the model, executes none of them again, and goes on alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Delete, Merge
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.swarm.task import StatusReason, Submitted, Task, TaskStatus
from fireswarm.errors import InvalidInput, QueueFull
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.swarm.board.rules import BoardRules
from fireswarm.swarm.submission.fork_task import find_following
from fireswarm.swarm.turn.given.files import is_given_here
from tests.integration.test_inputs import Expert, part, plan, turn
from tests.integration.test_thinking import act, decide, logged, submit
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio


def log(word: str) -> dict[str, Any]:
    return decide(act("run_command", command=f"echo {word} >> log.txt; echo did {word}"))


async def three_steps(swarm: SwarmRig, folder: Path, **more: Any) -> Task:
    await submit(swarm, folder, **more)
    return await turn(swarm, folder, Expert(log("one"), log("two"), "the answer"), "scout")


async def test_fork_repeats_no_step_and_its_model_knows_all_before_the_answer(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    made = await swarm.client.fork(task, 2, text="count backwards")
    expert = Expert(log("other"), "another answer")
    done = await turn(swarm, tmp_path, expert, "scout")
    assert done.task_id == made.task_id and done.status is TaskStatus.DONE and done.summary == "another answer"
    assert logged(tmp_path) == ["one", "two", "other"]
    assert "did one" in expert.told[0] and "count backwards" in expert.told[0] and "is a fork" in expert.told[0]
    assert "did two" not in "".join(expert.told)
    assert (await swarm.task(task.task_id)).summary == "the answer"


async def test_fork_before_the_first_answer_repeats_nothing_and_knows_nothing(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    await swarm.client.fork(task, 1, objective="count the letters")
    expert = Expert("26")
    done = await turn(swarm, tmp_path, expert, "scout")
    assert expert.first.startswith("# Task\ncount the letters") and "did" not in expert.first
    assert done.objective == "count the letters" and done.summary == "26"


async def test_fork_of_a_fork_counts_the_answers_of_both(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    first = await swarm.client.fork(task, 3, text="go on")
    await turn(swarm, tmp_path, Expert(log("three"), "a third answer"), "scout")
    await swarm.client.fork(first.task_id, 4, text="again")
    expert = Expert("a fourth answer")
    await turn(swarm, tmp_path, expert, "scout")
    assert "did three" in expert.told[0] and logged(tmp_path) == ["one", "two", "three"]
    await swarm.client.fork(first.task_id, 2)
    early = Expert("an early answer")
    await turn(swarm, tmp_path, early, "scout")
    assert "did one" in early.told[0] and "go on" not in early.told[0]


async def test_fork_goes_on_after_a_crash_as_any_other_task(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    made = await swarm.client.fork(task, 3)
    held = await swarm.claim_one("agent-dead", "scout")
    assert held.task.task_id == made.task_id
    for _ in range(3):
        await swarm.clock.advance(1_000)
        await swarm.board.sweep("scout")
    expert = Expert("done at last")
    done = await turn(swarm, tmp_path, expert, "scout")
    assert done.summary == "done at last" and "did two" in expert.told[0] and logged(tmp_path) == ["one", "two"]


async def test_same_fork_is_made_once_and_another_one_beside_it(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    made: list[Submitted] = [await swarm.client.fork(task, 2, text=text) for text in ("a", "a", "b")]
    made.append(await swarm.client.fork(task, 2, text="a", again="x"))
    assert [item.created for item in made] == [True, False, True, True]
    forks = await find_following(swarm.store, task)
    assert {fork.task_id for fork in forks} == {item.task_id for item in made} and len(forks) == 3
    assert all(fork.continues == task.task_id and fork.fork_before == 2 for fork in forks)


async def test_fork_takes_no_approval_and_no_conversation_from_its_origin(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    answered = {"0/1.1/x": {"approval": "yes"}}
    await swarm.store.commit([Merge(task_path(task.task_id), {"answered": answered})])
    fork = (await swarm.client.fork(task, 2)).task
    assert fork.answered == {} and fork.thread == fork.task_id and fork.trace.chain_id == fork.task_id
    following = await swarm.client.say(task, "and now?")
    assert following.continues == task.task_id and following.task_id != fork.task_id


@pytest.mark.parametrize("before", [4, 40])
async def test_answer_that_was_not_given_is_refused_with_those_that_were(
    swarm: SwarmRig, tmp_path: Path, before: int
) -> None:
    task = await three_steps(swarm, tmp_path)
    with pytest.raises(InvalidInput, match="of its model before a plan are 1, 2, 3"):
        await swarm.client.fork(task, before)


async def test_fork_before_a_plan_has_none_of_its_tasks_and_parts_of_it_are_not_forked(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    objective = await submit(swarm, tmp_path, role="architect")
    await turn(swarm, tmp_path, Expert(log("look"), plan(part("a"))), "architect")
    await turn(swarm, tmp_path, Expert("a is done"), "scout")
    await turn(swarm, tmp_path, Expert("the end"), "architect")
    child = next(task for task in await swarm.board.list() if task.plan_key == "a")
    with pytest.raises(InvalidInput, match="is part of a plan: fork its objective before the plan"):
        await swarm.client.fork(child, 1)
    with pytest.raises(InvalidInput, match="before a plan are 1, 2"):
        await swarm.client.fork(objective, 3)
    await swarm.client.fork(objective, 2)
    expert = Expert("without a plan")
    done = await turn(swarm, tmp_path, expert, "architect")
    assert done.summary == "without a plan" and not done.children and "a is done" not in expert.first
    assert "did look" in expert.told[0] and "a is done" not in expert.told[0]


async def test_fork_whose_origin_lost_its_runs_says_so_before_it_pays(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    await swarm.client.fork(task, 3)
    await swarm.store.commit([Delete(run_path(task.run_id(1)))])
    expert = Expert()
    ended = await turn(swarm, tmp_path, expert, "scout")
    assert ended.status is TaskStatus.BLOCKED and "is gone with" in (ended.error or "") and not expert.told


async def test_fork_keeps_the_budget_and_takes_another_model(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await three_steps(swarm, tmp_path)
    await swarm.store.commit([Merge(task_path(task.task_id), {"budget": {"usd": 0.5}, "effort": "high"})])
    fork = (await swarm.client.fork(task, 2, model="anthropic:claude-haiku-4-5")).task
    assert fork.budget is not None and fork.budget.usd == 0.5
    assert fork.model == "anthropic:claude-haiku-4-5" and fork.effort is None
    with pytest.raises(InvalidInput, match="cannot be used"):
        await swarm.client.fork(task, 2, model="nobody:nothing")


async def test_follow_up_and_fork_of_work_by_mail_do_not_trust_its_attachments(swarm: SwarmRig, tmp_path: Path) -> None:
    """A message may name any file: neither a reply nor a fork may make its attachments a person's."""
    secret = tmp_path / "secret.txt"
    secret.write_text("a key of the machine")
    stolen = Attachment(name="notes.txt", mime="text/plain", uri=secret.as_uri())
    task = await three_steps(swarm, tmp_path, attachments=(stolen,), message_id="m1", created_by="stranger")
    following = await swarm.client.say(task, "thank you, go on")
    fork = (await swarm.client.fork(task, 2)).task
    assert not is_given_here(following) and not is_given_here(fork)
    expert = Expert(decide(act("read_file", path="inputs/attached/notes.txt")), "x")
    await turn(swarm, tmp_path, expert, "scout")
    assert "a key of the machine" not in expert.first + "".join(expert.told)


async def test_fork_of_a_task_that_waits_has_none_of_its_questions(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    ask = decide(act("ask_user", question="which color?"))
    waiting = await turn(swarm, tmp_path, Expert(log("one"), ask), "scout")
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED
    await swarm.client.fork(waiting, 2, text="any color will do")
    done = await turn(swarm, tmp_path, Expert("blue"), "scout")
    assert done.summary == "blue" and not done.questions and logged(tmp_path) == ["one"]


@pytest.mark.parametrize("lost", ["the task", "its run"])
async def test_fork_of_a_fork_without_its_origin_executes_nothing_again(
    swarm: SwarmRig, tmp_path: Path, lost: str
) -> None:
    task = await three_steps(swarm, tmp_path)
    first = (await swarm.client.fork(task, 3)).task
    await turn(swarm, tmp_path, Expert(log("three"), "a third answer"), "scout")
    second = await swarm.client.fork(first, 4, text="go on")
    path = task_path(task.task_id) if lost == "the task" else run_path(task.run_id(1))
    await swarm.store.commit([Delete(path)])
    with pytest.raises(InvalidInput, match="gone"):
        await swarm.client.fork(first, 4, text="another")
    expert = Expert()
    ended = await turn(swarm, tmp_path, expert, "scout")
    assert ended.task_id == second.task_id and "is gone with" in (ended.error or "")
    assert logged(tmp_path) == ["one", "two", "three"] and not expert.told


async def test_fork_takes_a_place_in_the_queue(tmp_path: Path) -> None:
    async with open_test_swarm(rules=BoardRules(max_queued=1)) as swarm:
        task = await three_steps(swarm, tmp_path)
        await swarm.client.fork(task, 2)
        with pytest.raises(QueueFull):
            await swarm.client.fork(task, 3)


@pytest.mark.parametrize(
    "event",
    [
        "text",
        7,
        {"type": "step_finished", "payload": "x"},
        {"type": "step_finished", "payload": {"step": "0/llm:" + "9" * 5_000}},
    ],
)
async def test_malformed_event_stops_no_fork(swarm: SwarmRig, tmp_path: Path, event: Any) -> None:
    task = await three_steps(swarm, tmp_path)
    path = f"{run_path(task.run_id(1))}/journal/000009"
    await swarm.store.commit([Merge(path, {"events": [event]}), Merge(run_path(task.run_id(1)), {"journal_pages": 9})])
    await swarm.client.fork(task, 3)
    assert (await turn(swarm, tmp_path, Expert("done"), "scout")).status is TaskStatus.DONE
