"""Attacks on what travels between tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Delete, Update
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.turn.outputs import output_folder
from tests.integration.test_inputs import Expert, by_key, part, turn
from tests.integration.test_plan_rounds import fail, finish, start
from tests.integration.test_thinking import act, decide, submit
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "required": ["total"]}


async def put(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    stored = await swarm.store.get(task_path(task_id))
    await swarm.store.commit([Update(stored.path, fields, stored.update_time)])


def write(text: str) -> dict[str, Any]:
    return decide(act("write_artifact", name="sum.json", content=text))


async def test_check_that_is_refused_has_not_passed(swarm: SwarmRig, tmp_path: Path) -> None:
    denied = {"permissions": {"deny": ["Bash(pytest:*)"]}}
    checks = [{"command": "pytest -q"}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, max_revisions=0, constraints=denied))
    ended = await turn(swarm, tmp_path, Expert("made"), "executor")
    assert ended.status is not TaskStatus.DONE


async def test_follow_up_of_a_message_reads_no_file_of_the_machine(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a key of the machine")
    attached = Attachment(name="secret.txt", uri=(tmp_path / "secret.txt").as_uri())
    task = await submit(
        swarm, tmp_path, role="executor", attachments=(attached,), created_by="scout-1", message_id="m1"
    )
    expert = Expert("no file")
    await turn(swarm, tmp_path, expert, "executor")
    assert "a key of the machine" not in expert.first
    await swarm.client.say(task.task_id, "go on")
    expert = Expert(decide(act("read_file", path="inputs/attached/secret.txt")), "done")
    await turn(swarm, tmp_path, expert, "executor")
    assert "a key of the machine" not in "".join(expert.told)


async def test_thread_id_names_no_folder_of_another_session(swarm: SwarmRig, tmp_path: Path) -> None:
    other = await swarm.submit("the other work", role="executor", session="s2")
    await swarm.claim_one(role="executor")  # at work
    folder = output_folder(swarm.core, other)
    folder.mkdir(parents=True)
    (folder / "private.md").write_text("of another session")
    task = await submit(swarm, tmp_path, role="scout")
    await put(swarm, task.task_id, thread_id=other.task_id)
    expert = Expert(decide(act("read_file", path="$OUTPUT_DIR/private.md")), "done")
    await turn(swarm, tmp_path, expert, "scout")
    assert "of another session" not in "".join(expert.told)


async def test_delegate_makes_no_task_in_another_session(swarm: SwarmRig, tmp_path: Path) -> None:
    other = await swarm.submit("the other work", role="executor", session="s2", context={"path": str(tmp_path)})
    await turn(swarm, tmp_path, Expert("secret"), "executor")
    await submit(swarm, tmp_path, role="architect")
    call = act("delegate", role="scout", objective="x", context={"asks_task": other.task_id})
    await turn(swarm, tmp_path, Expert(decide(call), "end"), "architect")
    assert [task.session_hash for task in await swarm.board.list() if task.parent_task_id] == ["s1"]


async def test_plan_of_which_a_task_is_canceled_goes_on(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    await fail(swarm, "a")
    root = await turn(swarm, tmp_path, Expert(finish(cancel=["a"])), "architect")
    assert (root.status, (await by_key(swarm, "b")).status) == (TaskStatus.BLOCKED, TaskStatus.QUEUED)


async def test_same_words_are_heard_again(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await submit(swarm, tmp_path, role="executor")
    await turn(swarm, tmp_path, Expert("one"), "executor")
    first = await swarm.client.say(task, "continue")
    await turn(swarm, tmp_path, Expert("two"), "executor")
    await swarm.client.say(first.task_id, "continue")
    expert = Expert("three")
    done = await turn(swarm, tmp_path, expert, "executor")
    assert done.result is not None and done.result.summary == "three"
    assert [told.splitlines()[0] for told in expert.told] == ["The operator says: continue"]


async def test_follow_up_of_a_planner_is_told_once(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    await turn(swarm, tmp_path, Expert("v1"), "scout")
    done = await turn(swarm, tmp_path, Expert("the end"), "architect")
    await swarm.client.say(done.task_id, "add a chapter")
    planner = Expert(finish(tasks=[part("x")]))
    await turn(swarm, tmp_path, planner, "architect")
    assert [told.splitlines()[0] for told in planner.told] == ["The operator says: add a chapter"]
    await turn(swarm, tmp_path, Expert("chapter"), "scout")
    planner = Expert("the end, with a chapter", "told again")
    last = await turn(swarm, tmp_path, planner, "architect")
    assert last.result is not None and last.result.summary == "the end, with a chapter"


async def test_revision_of_work_that_once_failed_a_file_check(swarm: SwarmRig, tmp_path: Path) -> None:
    checks = [{"file": "$OUTPUT_DIR/sum.json", "json_schema": SCHEMA}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks))
    await turn(swarm, tmp_path, Expert(write("{}"), "made", write('{"total": 3}'), "made at last"), "executor")
    await turn(swarm, tmp_path, Expert(finish(revise=[{"key": "a", "note": "add 1"}])), "architect")
    expert = Expert(write('{"total": 4}'), "now 4")
    done = await turn(swarm, tmp_path, expert, "executor")
    assert done.result is not None and done.result.summary == "now 4" and "add 1" in expert.told[0]


async def test_resumed_run_does_not_end_with_a_draft(swarm: SwarmRig, tmp_path: Path) -> None:
    checks = [{"file": "$OUTPUT_DIR/sum.json", "json_schema": SCHEMA}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks))
    asks = decide(act("ask_user", question="which unit?"))
    draft = Expert(write("{}"), "draft, not done", write('{"total": 3}'), asks)
    waits = await turn(swarm, tmp_path, draft, "executor")
    await swarm.client.answer(waits.task_id, {"answer": "m"})
    done = await turn(swarm, tmp_path, Expert("final in m"), "executor")
    assert done.result is not None and done.result.summary == "final in m"


async def test_retried_task_behind_a_canceled_one_is_awaited(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("c", "executor", depends_on=["a"]))
    await swarm.client.cancel(await by_key(swarm, "a"))
    root = await turn(swarm, tmp_path, Expert(finish(retry=[{"key": "c", "note": "do it without a"}])), "architect")
    assert (await by_key(swarm, "c")).status is TaskStatus.QUEUED
    assert root.status is TaskStatus.BLOCKED, root.summary


async def test_new_task_behind_a_canceled_one_is_refused(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"), part("f", "executor"))
    await fail(swarm, "f", "executor")
    both = finish(tasks=[part("d", "executor", depends_on=["a"])], cancel=["a"])
    root = await turn(swarm, tmp_path, Expert(both, finish(wait=True)), "architect")
    assert root.status_reason is StatusReason.DELEGATING, root.summary


async def test_follow_up_waits_for_all_of_many_tasks(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, *(part(f"o{number}") for number in range(3)))
    for _ in range(3):
        await swarm.settle(await swarm.claim_one(), Failed("x", StatusReason.ESCALATED))
    done = await turn(swarm, tmp_path, Expert("all failed"), "architect")
    following = await swarm.client.say(done.task_id, "try anew")
    await turn(swarm, tmp_path, Expert(finish(tasks=[part(f"n{number}") for number in range(10)])), "architect")
    for _ in range(7):
        await swarm.settle(await swarm.claim_one())
    assert (await swarm.task(following.task_id)).status is TaskStatus.BLOCKED  # three are still queued


async def test_objective_ends_although_a_grandchild_was_deleted(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a", "predictor"), part("b"))
    await turn(swarm, tmp_path, Expert(decide(act("delegate", role="executor", objective="x"))), "predictor")
    await swarm.store.commit([Delete(task_path((await by_key(swarm, "a")).children[0]))])
    await fail(swarm, "b")
    root = await turn(swarm, tmp_path, Expert("the end"), "architect")
    assert root.status is TaskStatus.DONE, root.summary
