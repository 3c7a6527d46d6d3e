"""A role's model that calls tools: delegation, questions and approvals survive any death and any wait."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from tests.integration.test_approvals import ASKS, request_of
from tests.integration.test_thinking import (
    Killed,
    answers_so_far,
    logged,
    one_turn,
    reclaimed,
    submit,
    thinking,
    was_killed,
)
from tests.support.experts import bash, calls
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio


class Expert:
    """Gives its answers by the number of those in the conversation; the last may use what the calls returned."""

    tools = True

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.asked: list[int] = []

    def __call__(self, request: ChatRequest) -> Any:
        turn = answers_so_far(request)
        self.asked.append(turn)
        answer = self.answers[turn]
        return answer(request) if callable(answer) else answer


def outputs(request: ChatRequest) -> list[str]:
    return [output.text for message in request.messages for output in message.outputs]


def report(request: ChatRequest) -> str:
    return " | ".join(re.sub(r"## [0-9a-f]{8} ", "", " ".join(text.split())) for text in outputs(request))


BOTH = calls(
    ("delegate", {"role": "predictor", "objective": "look at a", "context": {"n": 1}}),
    ("delegate", {"role": "memory", "objective": "look at b"}),
)
SEEN = "(predictor, done: look at a) Summary: looked at a | (memory, done: look at b) Summary: looked at b"


async def children_of(swarm: SwarmRig, task: Task) -> list[Task]:
    return sorted((each for each in await swarm.board.list() if each.parent_task_id == task.task_id), key=_objective)


def _objective(task: Task) -> str:
    return task.objective


async def end_children(swarm: SwarmRig) -> None:
    for role in ("predictor", "memory"):
        for held in await swarm.claim("helper", role=role):
            await swarm.board.settle(held, done(f"looked at {held.task.objective[-1]}"))


@pytest.fixture
async def swarm() -> Any:
    async with open_test_swarm() as opened:
        yield opened


async def test_delegated_tasks_run_at_once_and_come_back_under_their_calls(swarm: SwarmRig, tmp_path: Path) -> None:
    expert = Expert(BOTH, report)
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path))
    assert (waiting.status, waiting.status_reason) == (TaskStatus.BLOCKED, StatusReason.DELEGATING)
    children = await children_of(swarm, waiting)
    assert [(child.assigned_to, child.objective, child.status) for child in children] == [
        ("predictor", "look at a", TaskStatus.QUEUED),
        ("memory", "look at b", TaskStatus.QUEUED),
    ]
    assert children[0].context["n"] == 1
    await end_children(swarm)
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path), "another")
    assert ended.result is not None and ended.result.summary == SEEN
    assert expert.asked == [0, 1], "no answer is asked for twice"


async def test_files_of_a_delegated_task_come_back_with_its_result(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("of the machine")
    expert = Expert(calls(("delegate", {"role": "memory", "objective": "write a report"})), report)
    await submit(swarm, tmp_path)
    await one_turn(swarm, thinking(swarm, expert, tmp_path))
    [held] = await swarm.claim("helper", role="memory")
    place = f"{held.task.session_hash}/{held.task.task_id}"
    blobs = swarm.core.blobs
    texts = {"report.md": b"# Found\n\nSeven.", "chart.png": b"\x89PNG\0\0", "large.csv": b"1\n" * 400_000}
    stored = [
        Artifact(type="file", name=name, uri=await blobs.put(f"{place}/{name}", data)) for name, data in texts.items()
    ]
    lost = Artifact(type="file", name="lost.md", uri=f"{stored[0].uri}.gone")
    foreign = Artifact(type="file", name="foreign.txt", uri=f"file://{tmp_path}/secret.txt")
    table = Artifact(type="table", name="rows", value=[{"n": 7}])
    await swarm.board.settle(held, done("It is written.", artifacts=(*stored, lost, foreign, table)))
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path), "another")
    assert ended.result is not None
    told = ended.result.summary
    assert told.startswith("(memory, done: write a report) Summary: It is written. - inputs/")
    assert "report.md (file, 15 bytes)" in told and "# Found Seven." in told
    assert "chart.png (file)" in told and "large.csv (file)" in told and "lost.md (file)" in told
    assert "rows.json (table, 18 bytes)" in told and '"n": 7' in told
    assert "foreign.txt" not in told
    assert "of the machine" not in told


async def test_delegation_happens_once_whenever_a_process_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is killed after each of its commits, in one start after another."""
    number, over = 0, False
    while not over:
        number += 1
        over = await _delegated_despite_a_kill(tmp_path / f"c{number}", monkeypatch, number)
    assert number > 5


async def _delegated_despite_a_kill(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int) -> bool:
    expert, made = Expert(BOTH, report), 0
    async with open_test_swarm() as swarm:
        asked = await submit(swarm, folder)
        real: Callable[..., Any] = swarm.store.commit

        async def commit(writes: list[Write], **options: Any) -> Any:
            nonlocal made
            result = await real(writes, **options)
            made += 1
            if made == kill_at:
                raise Killed
            return result

        monkeypatch.setattr(swarm.store, "commit", commit)
        for _ in range(12):
            task = await swarm.task(asked.task_id)
            if task.status is TaskStatus.DONE:
                break
            try:
                if task.status_reason is StatusReason.DELEGATING:
                    await end_children(swarm)
                else:
                    await one_turn(swarm, thinking(swarm, expert, folder))
            except ValueError:  # it died before the task could be claimed
                await _let_leases_pass(swarm)
            except BaseException as error:
                if not was_killed(error):
                    raise
                await _let_leases_pass(swarm)
        task = await swarm.task(asked.task_id)
        assert task.result is not None and task.result.summary == SEEN, f"killed at {kill_at}: {task.summary}"
        assert len(await children_of(swarm, task)) == 2, f"killed at {kill_at}"
    monkeypatch.undo()
    return made < kill_at


async def _let_leases_pass(swarm: SwarmRig) -> None:
    await reclaimed(swarm)
    for role in ("predictor", "memory"):
        await swarm.board.sweep(role)


async def test_question_is_answered_a_day_later_in_another_process(swarm: SwarmRig, tmp_path: Path) -> None:
    ask = calls(bash("echo once >> log.txt"), ("ask_user", {"question": "Red or blue?", "options": ["red", "blue"]}))
    expert = Expert(ask, report)
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path))
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED
    [question] = waiting.questions
    assert (question.description, question.choices) == ("Red or blue?", ("red", "blue"))
    await swarm.clock.advance(86_400)
    await swarm.board.answer(waiting.task_id, {question.key: "blue"})
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path), "another")
    assert ended.result is not None and ended.result.summary == "[exit code 0] | blue"
    assert (logged(tmp_path), expert.asked) == (["once"], [0, 1])


async def test_permission_is_denied_then_granted_for_another_command(swarm: SwarmRig, tmp_path: Path) -> None:
    expert = Expert(calls(bash("echo a | tee -a log.txt")), calls(bash("echo b | tee -a log.txt")), report)
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path, **ASKS))
    decision, reason = waiting.questions
    await swarm.board.answer(waiting.task_id, {decision.key: "no", reason.key: "take b"})
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path, **ASKS))
    await swarm.clock.advance(86_400)
    await swarm.board.answer(waiting.task_id, {request_of(waiting): "yes"})
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path, **ASKS), "another")
    assert ended.result is not None
    assert "take b" in ended.result.summary and ended.result.summary.endswith("| b")
    assert (logged(tmp_path), expert.asked) == (["b"], [0, 1, 2])


async def test_edit_is_approved_once_though_its_diff_changes_with_the_file(swarm: SwarmRig, tmp_path: Path) -> None:
    asks = {"permissions": {"ask": ["Edit"]}}
    edits = [calls(("edit_file", {"path": "a", "old_text": f"{n}\n", "new_text": f"{n + 1}\n"})) for n in (1, 1)]
    expert = Expert(*edits, calls(("ask_user", {"question": "Go on?", "options": ["yes"]})), "Two.")
    await submit(swarm, tmp_path)
    (tmp_path / "space").mkdir(exist_ok=True)
    (tmp_path / "space" / "a").write_text("1\n")
    for decision in ("no", "yes"):
        waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path, **asks))
        assert waiting.status_reason is StatusReason.APPROVAL_REQUIRED
        await swarm.board.answer(waiting.task_id, {request_of(waiting): decision})
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path, **asks))
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED, waiting.summary
    await swarm.board.answer(waiting.task_id, {waiting.questions[0].key: "yes"})
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path, **asks), "another")
    assert ended.result is not None and ended.result.summary == "Two.", ended.summary
    assert (tmp_path / "space" / "a").read_text() == "2\n"


async def test_plan_is_given_with_finish_and_its_results_come_back(swarm: SwarmRig, tmp_path: Path) -> None:
    task = {"key": "look", "assigned_to": "predictor", "objective": "look at a"}
    plan = calls(("finish", {"answer": "planned", "result": {"tasks": [task]}}))
    expert = Expert(plan, "Looked.")

    def again(request: ChatRequest) -> Any:
        return "All is well." if "looked at a" in request.messages[0].text else expert(request)

    again.tools = True  # type: ignore[attr-defined]
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, again, tmp_path))
    assert waiting.status_reason is StatusReason.DELEGATING
    await end_children(swarm)
    ended = await one_turn(swarm, thinking(swarm, again, tmp_path))
    assert ended.result is not None and ended.result.summary == "All is well."


@pytest.mark.parametrize("role", ["pilot", "executor"])
async def test_delegation_to_an_unknown_or_forbidden_role_is_explained(
    role: str, swarm: SwarmRig, tmp_path: Path
) -> None:
    expert = Expert(calls(("delegate", {"role": role, "objective": "fly"})), report)
    await submit(swarm, tmp_path)
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path))
    assert ended.result is not None and role in ended.result.summary
    assert await children_of(swarm, ended) == []


async def test_answer_with_control_characters_is_executed_and_sent_back_as_it_was(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    odd = "one\r\ntwo\x1b[1m\x0c\x00\r\n\u05d0\u200f\n"
    write = ("write_file", {"path": "odd", "content": odd})
    sent: list[ChatRequest] = []

    def report(request: ChatRequest) -> str:
        sent.append(request)
        return "Written."

    expert = Expert(calls(("ask_user", {"question": "Shall I?"}), write, text="\u05d0\u200f\x1b[1m"), report)
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path))
    await swarm.board.answer(waiting.task_id, {waiting.questions[0].key: "yes"})
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path), "another")
    assert (ended.status, expert.asked) == (TaskStatus.DONE, [0, 1])
    assert (tmp_path / "space" / "odd").read_bytes() == odd.encode()
    [answer] = [message.content for message in sent[0].messages if message.role == "assistant"]
    assert answer is not None
    assert (answer[0]["text"], answer[-1]["input"]) == ("\u05d0\u200f\x1b[1m", write[1])


MATRIX: dict[str, Any] = {"table": [[1, 2], [3, [4]]], "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"g": [1]}}}}}}}}


async def test_input_that_a_document_cannot_hold_as_it_is_reaches_the_tool_and_is_sent_back(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    """Documents hold no array directly in an array; a journaled answer does, and a later turn sends it back."""
    sent: list[ChatRequest] = []

    def report(request: ChatRequest) -> str:
        sent.append(request)
        return "Done."

    given = {"question": "Shall I?", **MATRIX}
    expert = Expert(calls(("ask_user", given)), report)
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, expert, tmp_path))
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED, waiting.summary
    await swarm.board.answer(waiting.task_id, {waiting.questions[0].key: "yes"})
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path), "another")
    assert (ended.status, expert.asked) == (TaskStatus.DONE, [0, 1])
    [answer] = [message.content for message in sent[0].messages if message.role == "assistant"]
    assert answer is not None
    assert answer[-1]["input"] == given


async def test_first_message_stays_the_same_after_an_answer(swarm: SwarmRig, tmp_path: Path) -> None:
    sent: list[str] = []

    def ask(request: ChatRequest) -> Any:
        sent.append(request.messages[0].text)
        return calls(("ask_user", {"question": "Shall I?"}))

    def report(request: ChatRequest) -> str:
        sent.append(request.messages[0].text)
        return "Done."

    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, thinking(swarm, Expert(ask, report), tmp_path))
    await swarm.board.answer(waiting.task_id, {waiting.questions[0].key: "yes"})
    ended = await one_turn(swarm, thinking(swarm, Expert(ask, report), tmp_path), "another")
    assert ended.status is TaskStatus.DONE
    assert len(sent) == 2 and sent[0] == sent[1]
