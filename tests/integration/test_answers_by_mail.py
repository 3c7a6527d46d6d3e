"""A message to the role of a waiting task answers its questions: it is checked like the command and applied once."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.contracts.ports import Create, Snapshot
from fireswarm.contracts.skills.skill import Question, Reply, SkillRequest, SkillResult, SkillState
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import PolicyRefused
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import message_path
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.turn import run_turn
from fireswarm.swarm.worker import answers_by_mail, mail
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, working

pytestmark = pytest.mark.anyio

SIDE = Question(name="where", description="Which side?", allowed={"enum": ["north", "south"]})
SCHEMA = {"properties": {"depth": {"type": "integer", "maximum": 100}}}


async def asked(swarm: SwarmRig, *questions: Question, **fields: Any) -> Task:
    """A task of the scout that waits for answers."""
    await swarm.submit(**fields)
    held = await swarm.claim_one()
    waits = Waiting(StatusReason.INPUT_REQUIRED, "which side?", questions or (SIDE,), SCHEMA)
    await swarm.settle(held, waits)
    return await swarm.task(held.task.task_id)


async def new(swarm: SwarmRig, role: str = "scout") -> list[Snapshot]:
    return await swarm.store.query(queries.answers(role))


async def take_all(swarm: SwarmRig, role: str = "scout") -> None:
    for snapshot in await new(swarm, role):
        await mail.act_on(swarm.core, role, snapshot, answers_by_mail.give_answers)


async def outcome(swarm: SwarmRig, message_id: str) -> str:
    data = (await swarm.store.get(message_path(message_id))).data
    assert data["status"] == "read"
    return str(data["outcome"])


async def ask(request: SkillRequest) -> SkillResult:
    if "where" in request.answers:
        return SkillResult(summary=f"went {request.answers['where']}")
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary="which side?", questions=(SIDE,))


async def test_valid_message_resumes_the_waiting_task(swarm: SwarmRig) -> None:
    core = with_skills(swarm, ask=ask)
    task = await swarm.submit(skill="ask")
    async with working(core) as worker:
        await eventually(swarm, lambda: worker.settled == 1, "asking")
        wrong = await core.mailbox.answer(task, {"where": "east"}, "operator", "1-wrong")
        right = await core.mailbox.answer(task, {"where": "north"}, "architect", "2-right")
        await eventually(swarm, lambda: worker.settled == 2, "going on")
    ended = await swarm.task(task.task_id)
    assert ended.result is not None and ended.result.summary == "went north"
    assert await outcome(swarm, right) == mail.TAKEN
    assert "'east' is not one of ['north', 'south']" in await outcome(swarm, wrong)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"where": "east"}, "'east' is not one of"),
        ({"where": 7}, "where must be of type string"),
        ({"where": "north", "colour": "red"}, "colour is not an open question"),
        ({}, "where is missing (Which side?)"),
    ],
)
async def test_invalid_answers_are_refused_and_message_and_task_stay_intact(
    given: dict[str, Any], told: str, swarm: SwarmRig
) -> None:
    task = await asked(swarm)
    message_id = await swarm.core.mailbox.answer(task, given, "operator")
    await take_all(swarm)
    assert told in await outcome(swarm, message_id)
    [message] = await swarm.core.mailbox.read(queries.newest("agent_mailbox", "created_at", 5))
    assert (message.payload.answers, message.outcome[:9]) == (task.bind(given), "refused: "), (
        "what was sent stays readable"
    )
    assert await swarm.task(task.task_id) == task, "the task still asks"
    assert await new(swarm) == []


async def test_answers_by_message_are_validated_against_the_skill_schema(swarm: SwarmRig) -> None:
    task = await asked(swarm, Question(name="depth", description="How deep?", type="integer"))
    message_id = await swarm.core.mailbox.answer(task, {"depth": 500}, "operator")
    await take_all(swarm)
    assert "500 is greater than the maximum of 100" in await outcome(swarm, message_id)


async def test_duplicate_or_late_message_changes_nothing(swarm: SwarmRig) -> None:
    task = await asked(swarm)
    mailbox = swarm.core.mailbox
    for _ in range(2):
        assert await mailbox.answer(task, {"where": "north"}, "operator", "reply-1") == "reply-1"
    await take_all(swarm)
    queued = await swarm.raw(task.task_id)
    assert (queued["status"], queued["answers"]) == ("queued", {"where": "north"})
    await mailbox.answer(task, {"where": "south"}, "operator", "reply-1")
    assert await new(swarm) == [], "the message was handled"
    late = await mailbox.answer(task, {"where": "south"}, "operator", "reply-2")
    await take_all(swarm)
    assert "question 1-1" in await outcome(swarm, late)
    assert await swarm.raw(task.task_id) == queued


async def test_concurrent_workers_apply_one_message_once(swarm: SwarmRig) -> None:
    task = await asked(swarm)
    message_id = await swarm.core.mailbox.answer(task, {"where": "north"}, "operator")
    [seen] = await new(swarm)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(mail.act_on, swarm.core, "scout", seen, answers_by_mail.give_answers)
    assert await outcome(swarm, message_id) == mail.TAKEN
    assert (await swarm.task(task.task_id)).answers == {"where": "north"}


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("given", ["north", "east"])
async def test_worker_killed_during_the_commit_applies_all_or_nothing(
    given: str, when: str, swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await asked(swarm)
    message_id = await swarm.core.mailbox.answer(task, {"where": given}, "operator")
    commit, writes = swarm.store.commit, list[Any]()

    async def dying(made: Any) -> Any:
        writes.extend(made)
        if when == "after":
            await commit(made)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(swarm.store, "commit", dying)
        with pytest.raises(Killed):
            await take_all(swarm)
    assert len(writes) == (2 if given == "north" else 1), "there is no write but the one that does it all"
    if when == "before":
        assert await swarm.task(task.task_id) == task
        assert len(await new(swarm)) == 1
    await take_all(swarm)
    told = await outcome(swarm, message_id)
    now = await swarm.task(task.task_id)
    if given == "north":
        assert (told, now.status, now.answers) == (mail.TAKEN, TaskStatus.QUEUED, {"where": "north"})
    else:
        assert told.startswith("refused") and now == task


# ── a helper ─────────────────────────────────────────────────────────────────────────────────────────────


async def helps(request: SkillRequest) -> SkillResult:
    reply = Reply(task_id=request.context["asking"], answers={"where": request.context.get("where", "south")})
    return SkillResult(summary="answered for you", replies=(reply,))


async def test_helper_of_another_role_answers_through_its_result(swarm: SwarmRig) -> None:
    core = with_skills(swarm, ask=ask, helps=helps)
    async with working(core) as scout, working(core, "architect", "architect-1"):
        task = await swarm.submit(skill="ask")
        await eventually(swarm, lambda: scout.settled == 1, "asking")
        helper = await swarm.submit("help", "architect", skill="helps", context={"asking": task.task_id})
        await eventually(swarm, lambda: scout.settled == 2, "going on")
    ended = await swarm.task(task.task_id)
    assert ended.result is not None and ended.result.summary == "went south"
    assert await outcome(swarm, f"{helper.task_id}.0.1") == mail.TAKEN


async def test_helper_killed_at_any_write_answers_once(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    core = with_skills(swarm, helps=helps)
    commit, made, sent = swarm.store.commit, 0, list[str]()

    async def dying(writes: Any, **options: Any) -> Any:
        nonlocal made
        made += 1
        if made == number and when == "before":
            raise Killed
        done = await commit(writes, **options)
        sent.extend(write.path for write in writes if write.path.startswith("agent_mailbox/"))
        if made == number:
            raise Killed
        return done

    for number in (1, 2, 3):
        for when in ("before", "after"):
            asking = await asked(swarm, objective=f"ask {number} {when}")
            context = {"asking": asking.task_id}
            await swarm.submit(f"help {number} {when}", "architect", skill="helps", context=context)
            made = 0
            sent.clear()
            with monkeypatch.context() as patch:
                patch.setattr(swarm.store, "commit", dying)
                for _ in range(3):
                    with contextlib.suppress(Killed):
                        await swarm.board.sweep("architect")
                        for held in await swarm.claim("a", "architect"):
                            ending = await run_turn(held, core)
                            await swarm.board.settle(held, ending.outcome, ending.writes)
                    await swarm.clock.advance(61)
            assert len(sent) == 1, (number, when, sent)
            await take_all(swarm)
            assert (await swarm.task(asking.task_id)).answers == {"where": "south"}
            [held] = await swarm.claim()
            await swarm.settle(held)


@pytest.mark.parametrize(
    ("role", "session", "told"),
    [
        ("memory", "s1", "memory may not answer tasks of scout"),
        ("architect", "s2", "this session has no task"),
    ],
)
async def test_helper_without_permission_to_answer_fails(role: str, session: str, told: str, swarm: SwarmRig) -> None:
    asking = await asked(swarm)
    await swarm.submit("help", role, skill="helps", context={"asking": asking.task_id}, session=session)
    held = await swarm.claim_one("a", role)
    ending = await run_turn(held, with_skills(swarm, helps=helps))
    await swarm.board.settle(held, ending.outcome, ending.writes)
    assert re.search(told, (await swarm.task(held.task.task_id)).summary)
    assert await new(swarm) == []


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────────


def under(swarm: SwarmRig, **answers: tuple[str, ...]) -> SwarmParts:
    policy = swarm.core.mailbox.policy.model_copy(update={"answers": answers})
    return replace(swarm.core, mailbox=replace(swarm.core.mailbox, policy=policy))


async def test_policy_controls_which_roles_may_answer(swarm: SwarmRig) -> None:
    task = await asked(swarm)
    with pytest.raises(
        PolicyRefused, match=r"memory may not answer tasks of scout: .* add scout under answers\.memory"
    ):
        await swarm.core.mailbox.answer(task, {"where": "north"}, "memory")
    assert await new(swarm) == []
    await under(swarm, memory=("scout",)).mailbox.answer(task, {"where": "north"}, "memory", "sent-anyway")
    await take_all(swarm)
    assert "memory may not answer tasks of scout" in await outcome(swarm, "sent-anyway")
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.INPUT_REQUIRED


async def test_answer_larger_than_an_envelope_is_refused(swarm: SwarmRig) -> None:
    with pytest.raises(PolicyRefused, match="max_envelope_bytes"):
        await swarm.core.mailbox.answer(await asked(swarm), {"where": "x" * 70_000}, "operator")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"session_hash": "s2"}, "of another session"),
        ({"task_id": "nobody"}, "there is no task nobody"),
        ({"payload": None}, "is not a message: payload"),
    ],
)
async def test_forged_message_is_refused_and_the_next_one_is_applied(
    wrong: dict[str, Any], told: str, swarm: SwarmRig
) -> None:
    task = await asked(swarm)
    sent = swarm.core.mailbox.answering(task, {"where": "north"}, "operator", "forged")
    await swarm.store.commit([Create(sent.path, {**sent.data, **wrong})])
    good = await swarm.core.mailbox.answer(task, {"where": "south"}, "operator")
    await take_all(swarm)
    assert told in await outcome(swarm, "forged")
    assert await outcome(swarm, good) == mail.TAKEN
    assert (await swarm.task(task.task_id)).answers == {"where": "south"}


async def test_message_to_the_wrong_role_is_refused_with_the_right_address(swarm: SwarmRig) -> None:
    task = await asked(swarm)
    sent = swarm.core.mailbox.answering(task, {"where": "north"}, "operator", "astray")
    await swarm.store.commit([Create(sent.path, {**sent.data, "to_agent_id": "memory"})])
    await take_all(swarm, "memory")
    assert "is for scout: address the message to that role" in await outcome(swarm, "astray")


async def test_message_of_answers_does_not_ask_for_work(swarm: SwarmRig) -> None:
    task = await asked(swarm)
    await swarm.core.mailbox.answer(task, {"where": "north"}, "operator")
    assert await swarm.store.query(queries.work_messages("scout")) == []


@pytest.mark.parametrize("place", ["/etc", "../other", "~", "file:///etc/passwd", "link"])
async def test_answer_of_a_role_names_no_place_outside_of_the_folder_of_the_task(
    place: str, swarm: SwarmRig, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    question = Question(name="path", description="Which folder?")
    task = await asked(swarm, question, context={"path": str(tmp_path / "work")})
    by_role = await swarm.core.mailbox.answer(task, {"path": place}, "architect", "1")
    await take_all(swarm)
    assert "is outside of" in await outcome(swarm, by_role) and await swarm.task(task.task_id) == task
    by_person = await swarm.core.mailbox.answer(task, {"path": place}, "operator", "2")
    await take_all(swarm)
    assert await outcome(swarm, by_person) == mail.TAKEN
