"""An answer counts for one question: the model's, a skill's, and those of people who answer late."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Update
from fireswarm.contracts.skills.skill import Question, SkillRequest, SkillResult, SkillState
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput, StaleAnswer
from fireswarm.storage.documents.paths import task_path
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking
from tests.support.fleet import lay_out
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

CONFIRM = Question(name="confirm", description="Delete A?")


@pytest.fixture
async def swarm() -> AsyncGenerator[SwarmRig]:
    async with open_test_swarm(session="s1") as opened:
        yield opened


async def asked(swarm: SwarmRig, *questions: Question) -> Task:
    held = await swarm.claim_one()
    await swarm.settle(held, Waiting(StatusReason.INPUT_REQUIRED, "?", questions))
    return await swarm.task(held.task.task_id)


def heard(request: ChatRequest) -> str:
    return request.messages[-1].outputs[-1].text


@pytest.mark.parametrize("name", [{}, {"name": ""}, {"name": "sure"}])
@pytest.mark.parametrize("words", [("Delete A?", "Delete B?"), ("Sure?", "Sure?")])
async def test_each_question_of_a_model_gets_its_own_answer(
    swarm: SwarmRig, tmp_path: Path, name: dict[str, str], words: tuple[str, str]
) -> None:
    got: list[str] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        number = answers_so_far(request)
        if number:
            got.append(heard(request))
        if number < len(words):
            return decide(act("ask_user", question=words[number], **name))
        return decide(act("finish", answer=" then ".join(got)))

    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    first = await one_turn(swarm, core)
    key = first.questions[0].name
    await swarm.board.answer(first.task_id, {key: "yes"})
    second = await one_turn(swarm, core, "another")
    assert second.status_reason is StatusReason.INPUT_REQUIRED, "the second question was not asked"
    assert second.questions[0].description == words[1] and second.questions[0].id != first.questions[0].id
    assert key not in second.answers
    await swarm.board.answer(second.task_id, {key: "no"})
    ended = await one_turn(swarm, core, "third")
    assert ended.result is not None and ended.result.summary == "yes then no"


async def test_two_questions_of_one_decision_get_their_own_answers(swarm: SwarmRig, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> dict[str, Any]:
        if not answers_so_far(request):
            return decide(act("ask_user", question="Delete A?"), act("ask_user", question="Delete B?"))
        return decide(act("finish", answer=" then ".join(output.text for output in request.messages[-1].outputs)))

    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    for answer in ("yes", "no"):
        waiting = await one_turn(swarm, core)
        await swarm.client.answer(waiting, {"answer": answer})
    ended = await one_turn(swarm, core)
    assert ended.result is not None and ended.result.summary == "yes then no"


async def test_answer_by_hand_counts_for_the_open_question_of_a_model_only(swarm: SwarmRig, tmp_path: Path) -> None:
    def script(request: ChatRequest) -> dict[str, Any]:
        if answers_so_far(request) < 2:
            return decide(act("ask_user", question="Sure?"))
        return decide(act("finish", answer=heard(request)))

    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    for answer in ("yes", "no"):
        waiting = await one_turn(swarm, core)
        path = task_path(waiting.task_id)
        await swarm.store.commit([Update(path, {"status": "queued"})])
        assert await swarm.claim() == [], "nothing was answered"
        await swarm.store.commit([Update(path, {"status": "queued", "answers": {"answer": answer}})])
    ended = await one_turn(swarm, core)
    assert ended.result is not None and ended.result.summary == "no"


PICKY = """
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    turns, answer = request.epoch - 1, request.answers.get("sure", "-")
    if turns < 2:
        ask = Question(name="sure", description=f"Question {turns} after {answer}", required=turns == 0)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="sure?", questions=(ask,))
    return SkillResult(summary=f"ended after {answer}")
"""


async def test_skill_that_asks_again_gets_only_the_new_answer(swarm: SwarmRig, tmp_path: Path) -> None:
    from fireswarm.skills.packs.catalog import load_catalog

    lay_out(tmp_path, {"picky": PICKY}, settings={})
    roles = {name: card.model_copy(update={"skills": ("picky",)}) for name, card in swarm.core.roles.items()}
    core = replace(swarm.core, catalog=load_catalog([tmp_path / "skills"]), roles=roles)
    await swarm.submit(skill="picky")
    given: list[tuple[str, dict[str, Any]]] = [("Question 0 after -", {"sure": "yes"}), ("Question 1 after yes", {})]
    for question, answers in given:
        waiting = await one_turn(swarm, core)
        assert waiting.status_reason is StatusReason.INPUT_REQUIRED and "sure" not in waiting.answers
        assert [asked.description for asked in waiting.questions] == [question]
        await swarm.board.answer(waiting.task_id, answers)
    ended = await one_turn(swarm, core)
    assert ended.result is not None and ended.result.summary == "ended after -"


async def test_equal_answers_to_a_repeated_question_are_two_turns(swarm: SwarmRig, tmp_path: Path) -> None:
    from fireswarm.skills.packs.catalog import load_catalog

    lay_out(tmp_path, {"picky": PICKY.replace("required=turns == 0", "required=True")}, settings={})
    roles = {name: card.model_copy(update={"skills": ("picky",)}) for name, card in swarm.core.roles.items()}
    core = replace(swarm.core, catalog=load_catalog([tmp_path / "skills"]), roles=roles)
    await swarm.submit(skill="picky")
    for _ in range(2):
        waiting = await one_turn(swarm, core)
        await swarm.board.answer(waiting.task_id, {"sure": "yes"})
    ended = await one_turn(swarm, core)
    assert ended.status is TaskStatus.DONE, "the turn was replayed instead of run"


async def test_late_answer_by_id_is_refused_and_changes_nothing(swarm: SwarmRig) -> None:
    await swarm.submit()
    first = await asked(swarm, CONFIRM)
    await swarm.board.answer(first.task_id, {first.questions[0].id: "yes"})
    with pytest.raises(StaleAnswer, match="is not open"):
        await swarm.board.answer(first.task_id, {first.questions[0].id: "yes"})
    second = await asked(swarm, CONFIRM.model_copy(update={"description": "Delete B?"}))
    for late in ({first.questions[0].id: "yes"}, {"9-1": "yes"}):
        with pytest.raises(StaleAnswer, match=f"Open questions: {second.questions[0].id} .confirm."):
            await swarm.board.answer(first.task_id, late)
    with pytest.raises(StaleAnswer):
        await swarm.client.answer(first, {"confirm": "yes"})
    assert await swarm.task(first.task_id) == second
    answered = await swarm.client.answer(second, {"confirm": "no"})
    assert (answered.status, answered.answers) == (TaskStatus.QUEUED, {"confirm": "no"})


async def test_late_answer_by_mail_is_refused(swarm: SwarmRig) -> None:
    from fireswarm.storage.documents.paths import message_path
    from fireswarm.swarm.worker.answers_by_mail import give_answers

    await swarm.submit()
    first = await asked(swarm, CONFIRM)
    late = await swarm.core.mailbox.answer(first, {"confirm": "yes"}, "operator")
    await swarm.board.answer(first.task_id, {"confirm": "no"})
    second = await asked(swarm, CONFIRM.model_copy(update={"description": "Delete B?"}))
    with pytest.raises(StaleAnswer):
        await give_answers(swarm.core, "scout", await swarm.store.get(message_path(late)))
    assert await swarm.task(first.task_id) == second


async def test_one_question_cannot_be_answered_by_name_and_id_at_once(swarm: SwarmRig) -> None:
    await swarm.submit()
    task = await asked(swarm, CONFIRM, Question(name="depth", description="?", type="integer"))
    assert [question.id for question in task.questions] == ["1-1", "1-2"]
    with pytest.raises(InvalidInput, match="confirm is answered twice"):
        await swarm.board.answer(task.task_id, {"1-1": "yes", "confirm": "no", "depth": 1})
    await swarm.board.answer(task.task_id, {"1-1": "yes", "depth": 1})
    assert (await swarm.task(task.task_id)).answers == {"confirm": "yes", "depth": 1}


async def test_result_with_two_questions_of_one_name_fails_with_the_reason(swarm: SwarmRig) -> None:
    async def twice(_: SkillRequest) -> SkillResult:
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="?", questions=(CONFIRM, CONFIRM))

    core = replace(swarm.core, inline={**swarm.core.inline, "twice": twice})
    await swarm.submit(skill="twice")
    ending = await run_turn(await swarm.claim_one(), core)
    assert "two questions named confirm" in str(ending.outcome)
