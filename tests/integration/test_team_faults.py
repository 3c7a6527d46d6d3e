"""Faults of the team that were found by attack: each test failed before its mechanism was built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Update
from fireswarm.contracts.skills.artifact import Artifact, Attachment
from fireswarm.contracts.swarm.outcome import Done, Released
from fireswarm.contracts.swarm.task import StatusReason, TaskResult, TaskStatus
from fireswarm.errors import WorkEdited
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_inputs import Expert, by_key, part, plan, plan_and_work, turn
from tests.integration.test_plan_rounds import fail, finish, root_of, start
from tests.integration.test_talking import ask
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


def shell(command: str) -> dict[str, Any]:
    return decide(act("run_command", command=command))


def names_of(result: TaskResult | None) -> list[str]:
    assert result is not None
    return sorted(str(artifact.name) for artifact in result.artifacts if artifact.uri)


@pytest.mark.parametrize("plans", [False, True])
async def test_what_is_said_at_the_end_of_a_turn_is_heard(swarm: SwarmRig, tmp_path: Path, plans: bool) -> None:
    task = await submit(swarm, tmp_path, role="architect")
    held = await swarm.claim_one(role="architect")
    ending = await run_turn(held, thinking(swarm, Expert(plan(part("a")) if plans else "done"), tmp_path))
    await swarm.client.say(task.task_id, "wait, also look at b")
    with pytest.raises(WorkEdited, match="told something at the end"):
        await swarm.board.settle(held, ending.outcome, ending.writes)
    await swarm.board.settle(held, Released())
    expert = Expert("with b")
    done = await turn(swarm, tmp_path, expert, "architect")
    assert "also look at b" in expert.told[0] and done.result is not None and done.result.summary == "with b"
    assert len(await swarm.board.list()) == 1  # the plan of the first start was not carried out


async def test_long_message_is_told_once(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await submit(swarm, tmp_path, role="scout")
    await swarm.client.say(task.task_id, "读" * 7_000)
    waits = await turn(swarm, tmp_path, Expert(decide(act("ask_user", question="?"))), "scout")
    await swarm.client.answer(waits.task_id, {"answer": "m"})
    expert = Expert("done", "told again")
    done = await turn(swarm, tmp_path, expert, "scout")
    assert done.result is not None and done.result.summary == "done"


async def test_dependency_that_fails_before_the_settle_wakes_the_planner(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    await fail(swarm, "a")
    held = await swarm.claim_one(role="architect")
    planner = Expert(finish(tasks=[part("d", "executor", depends_on=["b"])]))
    ending = await run_turn(held, thinking(swarm, planner, tmp_path))
    await fail(swarm, "b", "predictor")
    await swarm.board.settle(held, ending.outcome, ending.writes)
    assert (await root_of(swarm)).status is TaskStatus.QUEUED
    assert (await by_key(swarm, "d")).status_reason is StatusReason.DEPENDENCIES
    await turn(swarm, tmp_path, Expert(finish(retry=[{"key": "b", "note": "once more"}])), "architect")
    await turn(swarm, tmp_path, Expert("b done"), "predictor")
    assert (await by_key(swarm, "d")).status is TaskStatus.QUEUED


async def test_planner_that_asks_waits_for_the_answer_only(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"), part("c", "executor"))
    await turn(swarm, tmp_path, Expert("a done"), "scout")
    root = await root_of(swarm)
    await swarm.client.say(root.task_id, "hurry")
    await turn(swarm, tmp_path, Expert(ask("a", "which?")), "architect")
    await fail(swarm, "b", "predictor")
    assert (await root_of(swarm)).status is TaskStatus.BLOCKED  # neither woken nor told a state as the answer
    await turn(swarm, tmp_path, Expert("version 3"), "scout")
    assert (await root_of(swarm)).status is TaskStatus.QUEUED  # although c is at work
    planner = Expert(finish(wait=True))
    root = await turn(swarm, tmp_path, planner, "architect")
    assert "version 3" in planner.told[0]
    assert root.status is TaskStatus.QUEUED  # it hears of the failure of b, which it has not seen


async def test_planner_that_is_woken_before_its_answer_goes_on_waiting(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("c", "executor"))
    await turn(swarm, tmp_path, Expert("a done"), "scout")
    root = await root_of(swarm)
    await swarm.client.say(root.task_id, "hurry")
    await turn(swarm, tmp_path, Expert(ask("a", "which?")), "architect")
    stored = await swarm.store.get(task_path(root.task_id))
    await swarm.store.commit([Update(stored.path, {"status": "queued", "status_reason": None}, stored.update_time)])
    planner = Expert("never asked")
    waits = await turn(swarm, tmp_path, planner, "architect")
    assert (waits.status_reason, planner.told) == (StatusReason.DELEGATING, [])
    await turn(swarm, tmp_path, Expert("version 3"), "scout")
    assert (await root_of(swarm)).status is TaskStatus.QUEUED


async def test_task_that_waits_for_a_person_is_not_asked(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "architect"))
    await turn(swarm, tmp_path, Expert(decide(act("ask_user", question="which?"))), "scout")
    asker = Expert(ask("a"), "without it")
    await turn(swarm, tmp_path, asker, "architect")
    assert "waits for a person's answer" in asker.told[1]


async def test_bound_of_rounds_counts_changes_and_not_waiting(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    root = await root_of(swarm)
    for number in range(8):
        await swarm.client.say(root.task_id, f"note {number}")
        await turn(swarm, tmp_path, Expert(finish(wait=True)), "architect")
    await fail(swarm, "a")
    planner = Expert(finish(retry=[{"key": "a", "note": "again"}]))
    await turn(swarm, tmp_path, planner, "architect")
    assert (await by_key(swarm, "a")).status is TaskStatus.QUEUED
    await fail(swarm, "a")
    core = thinking(
        swarm, Expert(finish(tasks=[part("x")], wait=True), finish(wait=True)), tmp_path, worker={"plan_rounds": 2}
    )
    await one_turn(swarm, core, role="architect")
    assert "x" not in [task.plan_key for task in await swarm.board.list()]


async def test_accepted_round_that_was_lost_does_not_accept_another_one(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    await fail(swarm, "a")
    root = await root_of(swarm)
    held = await swarm.claim_one(role="architect")
    await run_turn(
        held, thinking(swarm, Expert(finish(cancel=["a"], wait=True)), tmp_path)
    )  # it dies before the settle
    await swarm.clock.advance(120)
    await swarm.board.sweep("architect")
    await swarm.client.say(root.task_id, "do c")
    planner = Expert(finish(retry=[{"key": "nope", "note": "x"}]), finish(wait=True))
    ended = await turn(swarm, tmp_path, planner, "architect")
    assert ended.status_reason is StatusReason.DELEGATING and "has no task nope" in planner.told[1]


async def test_failed_checks_run_again_in_a_retry_with_all_tries(swarm: SwarmRig, tmp_path: Path) -> None:
    checks = [{"command": "test -s ready.txt"}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, max_revisions=1, context={"path": "."}))
    failed = await turn(swarm, tmp_path, Expert("made", "made"), "executor")
    assert failed.status_reason is StatusReason.ESCALATED
    await swarm.client.retry(failed.task_id)
    expert = Expert(shell("echo x > ready.txt"), "made at last")
    done = await turn(swarm, tmp_path, expert, "executor")
    assert done.status is TaskStatus.DONE and "checks of this task failed" in expert.told[0]


async def test_revision_has_its_own_tries(swarm: SwarmRig, tmp_path: Path) -> None:
    checks = [{"command": "test -s n.txt && ! test -e bad"}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, max_revisions=1, context={"path": "."}))
    await turn(swarm, tmp_path, Expert("made", shell("echo 1 > n.txt"), "made"), "executor")
    await turn(swarm, tmp_path, Expert(finish(revise=[{"key": "a", "note": "more"}])), "architect")
    mended = Expert(shell("touch bad"), "v2", shell("rm bad"), "v2 mended")
    done = await turn(swarm, tmp_path, mended, "executor")
    assert done.status is TaskStatus.DONE, done.summary


async def test_revision_begins_with_the_same_bytes(swarm: SwarmRig, tmp_path: Path) -> None:
    seen: list[str] = []

    def expert(request: ChatRequest) -> Any:
        seen.append(request.messages[0].text)
        return ("one", "two")[answers_so_far(request)]

    await start(swarm, tmp_path, part("a", "executor"))
    await turn(swarm, tmp_path, expert, "executor")
    await turn(swarm, tmp_path, Expert(finish(revise=[{"key": "a", "note": "more"}])), "architect")
    await turn(swarm, tmp_path, expert, "executor")
    assert seen[0] == seen[1]


async def test_retried_revision_hears_its_feedback_and_the_note(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    await turn(swarm, tmp_path, Expert("v1"), "scout")
    await turn(swarm, tmp_path, Expert(finish(revise=[{"key": "a", "note": "give sources"}])), "architect")
    await fail(swarm, "a~2")
    await turn(swarm, tmp_path, Expert(finish(retry=[{"key": "a~2", "note": "try again"}])), "architect")
    expert = Expert("v2", "v3")
    await turn(swarm, tmp_path, expert, "scout")
    assert [sum(note in text for text in expert.told) for note in ("give sources", "try again")] == [1, 1]


@pytest.mark.parametrize("again", ["a", "a~2"])
async def test_task_under_revision_is_not_sent_back_again(swarm: SwarmRig, tmp_path: Path, again: str) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    await turn(swarm, tmp_path, Expert("v1"), "scout")
    await fail(swarm, "b", "predictor")
    await turn(swarm, tmp_path, Expert(finish(revise=[{"key": "a", "note": "x"}])), "architect")
    await swarm.client.say((await root_of(swarm)).task_id, "hurry")
    planner = Expert(finish(revise=[{"key": again, "note": "y"}]), finish(wait=True))
    await turn(swarm, tmp_path, planner, "architect")
    assert "a~2" in planner.told[1]
    assert sorted(task.plan_key for task in await swarm.board.list()) == ["", "a", "a~2", "b"]


async def test_objective_that_goes_on_hears_all_in_one_conversation(swarm: SwarmRig, tmp_path: Path) -> None:
    task = await submit(swarm, tmp_path, role="executor")
    await turn(swarm, tmp_path, Expert("one"), "executor")
    first = await swarm.client.say(task.task_id, "add A")
    second = await swarm.client.say(task.task_id, "add B")
    assert first.task_id == second.task_id
    expert = Expert("with A and B", "with B")
    await turn(swarm, tmp_path, expert, "executor")
    assert "add A" in "".join(expert.told) and "add B" in "".join(expert.told)
    third = await swarm.client.say(task.task_id, "add C")
    assert third.continues == first.task_id


@pytest.mark.parametrize("waits", [False, True])
async def test_file_that_a_follow_up_deletes_does_not_come_back(swarm: SwarmRig, tmp_path: Path, waits: bool) -> None:
    task = await submit(swarm, tmp_path, role="executor")
    made = shell("echo o > $OUTPUT_DIR/old.md") if waits else decide(act("write_artifact", name="old.md", content="o"))
    await turn(swarm, tmp_path, Expert(made, "one"), "executor")
    following = await swarm.client.say(task.task_id, "replace old.md by new.md")
    answers = [shell("rm $OUTPUT_DIR/old.md; echo n > $OUTPUT_DIR/new.md")]
    if waits:
        await turn(swarm, tmp_path, Expert(*answers, decide(act("ask_user", question="?"))), "executor")
        await swarm.client.answer(following.task_id, {"answer": "m"})
        answers = []
    done = await turn(swarm, tmp_path, Expert(*answers, "replaced"), "executor")
    assert names_of(done.result) == ["new.md"]


async def test_one_input_that_cannot_be_read_does_not_hide_the_others(swarm: SwarmRig, tmp_path: Path) -> None:
    changed = await swarm.core.blobs.put("s1/x/changed.md", b"changed")
    good = await swarm.core.blobs.put("s1/x/good.md", b"good words")
    artifacts = (
        Artifact(type="file", name="changed.md", uri=changed, sha256="0" * 64),
        Artifact(type="file", name="good.md", uri=good),
    )
    before = await submit(swarm, tmp_path, role="scout")
    await swarm.settle(await swarm.claim_one(), Done(TaskResult(summary="made", artifacts=artifacts)))
    await submit(swarm, tmp_path, role="executor", depends_on=(before.task_id,), fresh_key="2")
    calls = (act("list_files", path="inputs"), act("search_files", path="inputs", pattern="good"))
    expert = Expert(decide(*calls, act("read_file", path=f"inputs/{before.task_id[:8]}/changed.md")), "done")
    await turn(swarm, tmp_path, expert, "executor")
    assert "good words" in expert.told[1] and expert.told[1].count("changed.md cannot be read") >= 3


async def test_two_files_of_one_name_are_both_delivered(swarm: SwarmRig, tmp_path: Path) -> None:
    await plan_and_work(swarm, tmp_path, part("a"), part("b", "executor"))
    named = ["inputs/a/report.md", "inputs/b/report.md"]
    done = await turn(swarm, tmp_path, Expert(finish("x", deliver=named)), "architect")
    assert names_of(done.result) == ["b/report.md", "report.md"]


async def test_task_with_the_key_of_a_folder_of_its_own_has_another_one(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text("the attached answer")
    attached = Attachment(name="answer.md", mime="text/markdown", uri=(tmp_path / "answer.md").as_uri())
    await submit(swarm, tmp_path, role="architect", attachments=(attached,))
    await turn(swarm, tmp_path, Expert(plan(part("attached"))), "architect")
    await turn(swarm, tmp_path, Expert("the planned answer"), "scout")
    planner = Expert(decide(act("read_file", path="inputs/attached/answer.md"), act("list_files", path="inputs")), "x")
    await turn(swarm, tmp_path, planner, "architect")
    assert "the attached answer" in planner.told[1] and "inputs/attached-2/answer.md" in planner.told[1]


BAD = [{"type": 5}, {"type": "nope"}, {"pattern": "("}, {"a": {"$defs": "[" * 9, "allOf": 3}, "allOf": "x"}]


@pytest.mark.parametrize("schema", BAD)
async def test_check_with_an_unusable_schema_is_refused_when_it_is_planned(
    swarm: SwarmRig, tmp_path: Path, schema: dict[str, Any]
) -> None:
    await submit(swarm, tmp_path, role="architect")
    checks = [{"file": "x.json", "json_schema": schema}]
    planner = Expert(plan(part("a", "executor", checks=checks)), "another plan")
    await turn(swarm, tmp_path, planner, "architect")
    assert "a check of task 'a' cannot run: the schema of x.json cannot be used" in planner.told[1]


LOST = [{"$ref": "#"}, {"$ref": "#/$defs/x"}, {"$ref": "http://localhost:1/x"}, {"$ref": "file:///etc/hostname"}]


@pytest.mark.parametrize(
    ("schema", "content"), [*((item, '"abc"') for item in LOST), ({"type": "object"}, "[" * 200_000)]
)
async def test_check_that_cannot_be_decided_fails_with_the_reason(
    swarm: SwarmRig, tmp_path: Path, schema: dict[str, Any], content: str
) -> None:
    checks = [{"file": "x.json", "json_schema": schema}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, max_revisions=0, context={"path": "."}))
    (tmp_path / "space" / "x.json").write_text(content)
    ended = await turn(swarm, tmp_path, Expert("made"), "executor")
    assert ended.status_reason is StatusReason.ESCALATED and "x.json" in str(ended.error), ended.summary


async def test_schema_of_a_check_may_define_its_own_parts(swarm: SwarmRig, tmp_path: Path) -> None:
    schema = {"$defs": {"count": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/count"}}}
    checks = [{"file": "x.json", "json_schema": schema}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, max_revisions=0, context={"path": "."}))
    (tmp_path / "space" / "x.json").write_text('{"n": 3}')
    ended = await turn(swarm, tmp_path, Expert("made"), "executor")
    assert ended.status is TaskStatus.DONE, ended.summary
