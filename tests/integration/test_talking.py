"""Agents talk to each other, and a person to them: asked once, told once, also after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Query
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput, TerminalTask
from fireswarm.storage.documents.paths import MAILBOX
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_inputs import Expert, by_key, part, turn
from tests.integration.test_plan_rounds import finish, start
from tests.integration.test_thinking import act, answers_so_far, decide, submit, thinking
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


def ask(to: str, question: str = "which version?") -> dict[str, Any]:
    return decide(act("ask", to=to, question=question))


async def question_of(swarm: SwarmRig) -> Task:
    return next(task for task in await swarm.board.list() if task.is_question)


async def test_finished_task_answers_a_question_from_its_own_conversation(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor", depends_on=["a"]))
    found = decide(act("write_artifact", name="notes.md", content="version 3 is the newest"))
    await turn(swarm, tmp_path, Expert(found, "a is done"), "scout")
    swarm.core.mailbox.policy.routes["predictor"] += ("scout",)
    waiting = await turn(swarm, tmp_path, Expert(ask("a")), "predictor")
    assert waiting.status_reason is StatusReason.DELEGATING
    scout = Expert("version 3")
    answered = await turn(swarm, tmp_path, scout, "scout")
    assert answered.is_question and answered.constraints.read_only
    assert "Only answer it, and change nothing: which version?" in scout.told[0]
    predictor = Expert("it is version 3")
    done = await turn(swarm, tmp_path, predictor, "predictor")
    assert "version 3" in predictor.told[0] and done.status is TaskStatus.DONE
    mail = [message for message in (await swarm.store.query(all_mail())) if "which version?" in str(message.data)]
    assert len(mail) == 1


def all_mail() -> Any:

    return Query(MAILBOX)


async def test_planner_answers_a_question_of_its_task_while_it_waits(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    await turn(swarm, tmp_path, Expert(ask("parent", "in which folder?")), "scout")
    architect = Expert(finish(tasks=[part("x")]), "in src")
    answered = await turn(swarm, tmp_path, architect, "architect")
    assert "in which folder?" in architect.told[0] and "only answer it" in architect.told[1]
    assert answered.is_question and answered.status is TaskStatus.DONE
    scout = Expert("looked in src")
    await turn(swarm, tmp_path, scout, "scout")
    assert "in src" in scout.told[0]
    assert (await turn(swarm, tmp_path, Expert("the end"), "architect")).status is TaskStatus.DONE


async def test_role_is_asked_as_a_task_of_its_own(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect")
    await turn(swarm, tmp_path, Expert(ask("scout", "what is in src?")), "architect")
    scout = Expert("two files")
    await turn(swarm, tmp_path, scout, "scout")
    assert scout.first.startswith("# Task\nAnswer a question: what is in src?")
    architect = Expert("the end")
    await turn(swarm, tmp_path, architect, "architect")
    assert "two files" in architect.told[0]


@pytest.mark.parametrize(
    ("to", "hint"),
    [
        ("nobody", "there is no agent 'nobody': tasks are a, parent"),
        ("executor", "scout may not hand work to executor"),
    ],
)
async def test_unknown_and_excluded_agents_are_named(swarm: SwarmRig, tmp_path: Path, to: str, hint: str) -> None:
    await start(swarm, tmp_path, part("a", "predictor"), part("b"))
    scout = Expert(ask(to), "done")
    await turn(swarm, tmp_path, scout, "scout")
    assert hint in scout.told[1]


async def test_running_task_hears_what_another_one_tells_it_before_its_next_call(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "executor"))
    tell = decide(act("tell", to="a", message="the file is large"), act("tell", to="gone", message="x"))
    sender = Expert(tell, "told")
    await turn(swarm, tmp_path, sender, "executor")
    assert "a (scout) hears it before its next step" in sender.told[1]
    assert "there is no agent 'gone'" in sender.told[1]
    scout = Expert("seen")
    await turn(swarm, tmp_path, scout, "scout")
    assert "Message 1 of the agent b: the file is large" in scout.told[0]


async def test_message_to_a_running_task_is_told_before_its_next_call_and_once(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await submit(swarm, tmp_path, role="scout")
    held = await swarm.claim_one()
    told: list[str] = []

    async def say() -> None:
        await swarm.client.say(task.task_id, "look at b too")
        await swarm.board.refresh(held)

    class Script:
        asked = 0

        def __call__(self, request: ChatRequest) -> Any:
            told.append(request.messages[-1].text)
            return decide(act("run_command", command="true")) if answers_so_far(request) < 2 else "done"

    core = thinking(swarm, Script(), tmp_path)
    await say()
    ending = await run_turn(held, core)
    await swarm.board.settle(held, ending.outcome, ending.writes)
    assert [text.count("Message 1 of the operator: look at b too") for text in told] == [1, 0, 0]
    with pytest.raises(InvalidInput, match="give a text that is not empty"):
        await swarm.client.say(task.task_id, " ")


async def test_planner_that_waits_is_woken_by_a_message(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    [root] = [task for task in await swarm.board.list() if task.parent_task_id is None]
    await swarm.client.say(root.task_id, "also look at c")
    planner = Expert(finish(tasks=[part("c")]))
    await turn(swarm, tmp_path, planner, "architect")
    assert "also look at c" in planner.told[0]
    assert (await by_key(swarm, "c")).status is TaskStatus.QUEUED


async def test_finished_objective_goes_on_as_a_follow_up_with_its_conversation_and_files(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    task = await submit(swarm, tmp_path, role="executor")
    write = decide(act("write_artifact", name="report.md", content="prices of 2025"))
    await turn(swarm, tmp_path, Expert(write, "written"), "executor")
    following = await swarm.client.say(task.task_id, "add those of 2026")
    assert (following.continues, following.parent_task_id, following.status) == (task.task_id, None, TaskStatus.QUEUED)
    executor = Expert(decide(act("read_file", path="$OUTPUT_DIR/report.md")), "added")
    done = await turn(swarm, tmp_path, executor, "executor")
    assert executor.told[0].splitlines()[0] == "The operator says: add those of 2026"
    assert "prices of 2025" in executor.told[1]
    assert done.status is TaskStatus.DONE and done.result is not None and done.result.summary == "added"
    again = await swarm.client.say(done.task_id, "and those of 2027")
    executor = Expert("added too")
    last = await turn(swarm, tmp_path, executor, "executor")
    assert (again.thread, executor.told[0].splitlines()[0]) == (task.task_id, "The operator says: and those of 2027")
    assert last.result is not None and last.result.summary == "added too"


async def test_task_that_was_canceled_or_done_by_code_hears_nothing(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await swarm.submit("x")
    await swarm.client.cancel(task)
    with pytest.raises(TerminalTask, match="hears nothing more"):
        await swarm.client.say(task, "more")
    by_code = await swarm.submit("by code", role="scout")
    await swarm.settle(await swarm.claim_one())
    await swarm.client.say(by_code, "more")
    held = await swarm.claim_one()
    ending = await run_turn(held, swarm.core)
    await swarm.board.settle(held, ending.outcome, ending.writes)
    failed = await swarm.task(held.task.task_id)
    assert "was done without a model" in str(failed.error)
