"""Skills that stop and resume on the board: their conversation is available to the process of the next turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from firelite.wire.server import Server
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.context import ConversationChange, TurnHold
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.settings import load_settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.skills.packs.terms import terms_of
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import CONTEXTS
from fireswarm.swarm.conversations.adapter import ONE_SHOT
from fireswarm.swarm.opening.stand_alone import StandAloneConversations
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.conversation import TaskConversation
from fireswarm.swarm.turn.turn import run_turn
from fireswarm_postgres.store import PostgresConversations
from tests.support.crashes import choose_moments
from tests.support.fleet import environment, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.postgres import postgres
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.talking import SKILLS, SURVEY, lay_out_skills, one_turn, open_talking

pytestmark = pytest.mark.anyio

DAY_SECONDS = 86_400.0


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[tuple[SwarmRig, SwarmParts]]:
    async with open_talking(tmp_path) as opened:
        yield opened


async def context_of(swarm: SwarmRig, task: Task) -> Any:
    return await DocumentConversations(swarm.store, swarm.clock).load(task.task_id)


async def test_skill_asks_two_questions_and_finishes(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    await swarm.submit(skill="survey")
    task = await one_turn(swarm, core)
    assert (task.status_reason, task.questions[0].name, task.turn) == (StatusReason.INPUT_REQUIRED, "where", 1)
    with pytest.raises(InvalidInput, match="'east' is not one of"):
        await swarm.board.answer(task.task_id, {"where": "east"})
    await swarm.board.answer(task.task_id, {"where": "north"})
    task = await one_turn(swarm, core)
    assert task.questions[0].name == "depth"
    for wrong, told in (("deep", "of type integer"), (500, "greater than the maximum")):
        with pytest.raises(InvalidInput, match=told):
            await swarm.board.answer(task.task_id, {"depth": wrong})
    await swarm.board.answer(task.task_id, {"depth": 7})
    task = await one_turn(swarm, core)
    assert task.status is TaskStatus.DONE
    assert task.result is not None and task.result.summary == "north 7, turns [1, 2, 3]"
    context = await context_of(swarm, task)
    assert (context.state.task_state, context.state.turn) == ("completed", 3)
    kinds = [event.type for event in context.events]
    assert kinds == ["request", "looked", "input_request", "answer", "looked", "input_request", "answer", "response"]
    raw = (await swarm.store.get(f"agent_contexts/{task.task_id}")).data
    assert raw["session_hash"] == "s1"


async def test_state_not_allowed_by_the_contract_fails_the_gate(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    await swarm.submit(skill="forbidden", context={"depth": 1})
    task = await one_turn(swarm, core)
    assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.GATE_FAILED)
    assert "does not allow" in task.summary
    assert await context_of(swarm, task) is None


async def test_task_is_escalated_after_its_last_allowed_turn(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    await swarm.submit(skill="endless")
    for turn in (1, 2, 3):
        task = await one_turn(swarm, core)
        assert task.status_reason is StatusReason.INPUT_REQUIRED
        await swarm.board.answer(task.task_id, {f"q{turn}": "more"})
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.ESCALATED and "max_turns (3)" in task.summary


async def test_paused_task_resumes_after_its_pause(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    await swarm.submit(skill="resting", context={"depth": 1})
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.PAUSED
    await swarm.clock.advance(601)
    await swarm.board.sweep("scout")
    task = await one_turn(swarm, core)
    assert task.result is not None and task.result.summary == "rested, paused"


async def test_delegating_skill_resumes_with_the_result_of_its_child(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    await swarm.submit(skill="delegates", context={"depth": 1})
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.DELEGATING
    await one_turn(swarm, core, "b")
    task = await one_turn(swarm, core, "c")
    assert task.result is not None and task.result.summary == "nothing to do, done, turn 2"


async def test_invalid_inputs_never_reach_the_skill(talking: tuple[SwarmRig, SwarmParts], tmp_path: Path) -> None:
    swarm, core = talking
    await swarm.submit(skill="survey", context={"depth": "deep", "log": str(tmp_path / "log")})
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.DEAD_LETTER and "'deep' is not of type 'integer'" in task.summary
    assert not (tmp_path / "log").exists()


async def test_tasks_of_one_session_share_a_named_conversation(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    shared = {"context_id": "garden", "where": "south", "depth": 3}
    await swarm.submit("first", skill="survey", context=shared)
    await swarm.submit("second", skill="survey", context=shared)
    await swarm.submit("third", skill="survey", context=shared, session="s2")
    found = [await one_turn(swarm, core) for _ in range(3)]
    told = {task.objective: task.result and task.result.summary for task in found}
    assert told == {
        "first": "south 3, turns [1]",
        "second": "south 3, turns [1, 1]",
        "third": "south 3, turns [1]",
    }, "nothing crosses a session"


async def test_shared_conversation_admits_one_turn_at_a_time(
    talking: tuple[SwarmRig, SwarmParts],
) -> None:
    swarm, core = talking
    for name in ("zero", "one", "two"):
        await swarm.submit(name, skill="survey", context={"context_id": "garden", "where": "south", "depth": 3})
    await one_turn(swarm, core)
    first, second = await swarm.claim("a", wanted=2)
    ending = await run_turn(first, core)
    late = await run_turn(second, core)
    await swarm.board.settle(second, late.outcome, late.writes)
    task = await swarm.task(second.task.task_id)
    assert (task.status_reason, task.turn) == (StatusReason.PAUSED, 0)
    await swarm.board.settle(first, ending.outcome, ending.writes)
    await swarm.clock.advance(3)
    await swarm.board.sweep("scout")
    task = await one_turn(swarm, core)
    assert task.result is not None and task.result.summary == "south 3, turns [1, 1, 1]"


async def test_first_turn_of_a_shared_conversation_is_one_turn_too(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    for name in ("one", "two"):
        await swarm.submit(name, skill="survey", context={"context_id": "garden", "where": "south", "depth": 3})
    first, second = await swarm.claim("a", wanted=2)
    ending = await run_turn(first, core)
    late = await run_turn(second, core)
    assert "conversation is locked by" in str(late.outcome)
    await swarm.board.settle(first, ending.outcome, ending.writes)
    assert "south 3, turns [1, 1]" in str((await run_turn(second, core)).outcome)


async def test_turn_waits_for_a_direct_call_of_its_conversation(talking: tuple[SwarmRig, SwarmParts]) -> None:
    swarm, core = talking
    context = {"context_id": "garden", "where": "south", "depth": 3}
    await swarm.submit("one", skill="survey", context=context)
    await one_turn(swarm, core)
    await swarm.submit("two", skill="survey", context=context)
    held = await swarm.claim_one()
    skill = core.catalog.get("survey")
    shared = TaskConversation.of(held, core, skill, terms_of(skill) or ONE_SHOT).context_id
    until = swarm.clock.now() + timedelta(seconds=5)
    conversations = DocumentConversations(swarm.store, swarm.clock)
    await conversations.apply(ConversationChange(shared, 1, hold=TurnHold("call-1", until=until)))
    assert "conversation is locked by call-1" in str((await run_turn(held, core)).outcome)
    await swarm.clock.advance(5)
    assert "south 3, turns [1, 1]" in str((await run_turn(held, core)).outcome)


class Killed(BaseException):
    """Stands in for the death of the process."""


Keeps = Callable[[SwarmRig, Path], DocumentConversations | StandAloneConversations | PostgresConversations]


async def test_crash_at_any_store_write_applies_no_turn_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await _dying_everywhere(tmp_path, lambda swarm, _: DocumentConversations(swarm.store, swarm.clock), monkeypatch)


async def test_crash_at_any_write_of_another_store_applies_no_turn_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keeps(swarm: SwarmRig, folder: Path) -> StandAloneConversations:
        folder.mkdir()
        return StandAloneConversations(load_settings(folder, environment={}), swarm.clock)

    await _dying_everywhere(tmp_path, keeps, monkeypatch, (StandAloneConversations, "apply"))


async def test_crash_at_any_postgres_statement_applies_no_turn_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres() as url:

        def keeps(swarm: SwarmRig, _: Path) -> PostgresConversations:
            return PostgresConversations(url, swarm.clock)

        first = PostgresConversations(url, VirtualClock())
        await first.migrate()
        await first.close()
        await _dying_everywhere(tmp_path, keeps, monkeypatch, (AsyncConnection, "execute"))


async def _dying_everywhere(
    root: Path, keeps: Keeps, monkeypatch: pytest.MonkeyPatch, writes: tuple[type[Any], str] | None = None
) -> None:
    lay_out_skills(root)
    made = await _dying(root, keeps, 0, "never", monkeypatch, writes)
    assert made > 6, "there were hardly any writes to die at"
    for number in choose_moments(made, few=3):
        for when in ("before", "after"):
            await _dying(root, keeps, number, when, monkeypatch, writes)


async def _dying(
    root: Path,
    keeps: Keeps,
    kill_at: int,
    when: str,
    monkeypatch: pytest.MonkeyPatch,
    writes: tuple[type[Any], str] | None,
) -> int:
    """Run the conversation with one crash at write *kill_at*, or none at 0; return the number of writes."""
    log = root / f"log-{kill_at}-{when}"
    async with open_test_swarm() as swarm:
        roles = {name: card.model_copy(update={"skills": tuple(SKILLS)}) for name, card in swarm.core.roles.items()}
        core = replace(swarm.core, catalog=load_catalog([root / "skills"]), roles=roles)
        contexts = keeps(swarm, root / f"artifacts-{kill_at}-{when}")
        core = core if isinstance(contexts, DocumentConversations) else replace(core, conversations=contexts)
        made = 0

        def counted(real: Any) -> Any:
            async def write(*arguments: Any, **named: Any) -> Any:
                nonlocal made
                made += 1
                if made == kill_at and when == "before":
                    raise Killed
                done = await real(*arguments, **named)
                if made == kill_at:
                    raise Killed
                return done

            return write

        task = await swarm.submit(skill="survey", context={"log": str(log), "path": str(root)}, max_attempts=10)
        with monkeypatch.context() as patch:
            patch.setattr(swarm.store, "commit", counted(swarm.store.commit))
            if writes is not None:
                patch.setattr(*writes, counted(getattr(*writes)))
            task = await _to_the_end(swarm, core, task.task_id)
        assert task.status is TaskStatus.DONE, (when, kill_at, task.error)
        context = await contexts.load(task.task_id)
        await contexts.close()
        assert context is not None
        assert task.result is not None and task.result.summary == "north 7, turns [1, 2, 3]", (kill_at, when)
        assert (context.state.turn, [event.sequence for event in context.events]) == (3, list(range(1, 9)))
        return made


async def _to_the_end(swarm: SwarmRig, core: SwarmParts, task_id: str) -> Task:
    for _ in range(12):
        task = await swarm.task(task_id)
        if task.status.terminal:
            return task
        try:
            await _go_on(swarm, core, task)
        except Killed:
            await swarm.clock.advance(300)
    return await swarm.task(task_id)


async def _go_on(swarm: SwarmRig, core: SwarmParts, task: Task) -> None:
    match task.status_reason:
        case StatusReason.INPUT_REQUIRED:
            given = {"where": "north", "depth": 7}
            asked = {question.name: given[question.name] for question in task.questions}
            await swarm.board.answer(task.task_id, asked)
        case _:
            await swarm.board.sweep("scout")
            for held in await swarm.claim("a"):
                ending = await run_turn(held, core)
                await swarm.board.settle(held, ending.outcome, ending.writes)


@contextmanager
def role_process(root: Path, endpoint: str) -> Generator[subprocess.Popen[bytes]]:
    """Run a scout in a separate process, which is killed at the end of the block."""
    with (root / "role.log").open("ab") as log:
        command = [sys.executable, "-m", "fireswarm.cli", "role", "scout", "--store", f"firelite://{endpoint}"]
        process = subprocess.Popen(
            command, cwd=root, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE_SECONDS)


async def test_conversation_continues_in_a_new_process_each_day(tmp_path: Path) -> None:
    """Each process is killed as soon as it has asked; the answers arrive one virtual day later."""
    lay_out_skills(tmp_path)
    async with open_test_swarm() as swarm, Server(swarm.database) as server:
        task = await swarm.submit(skill="survey")
        for answers in ({"where": "south"}, {"depth": 12}, None):
            with role_process(tmp_path, server.endpoint):

                async def rests() -> bool:
                    return (await swarm.task(task.task_id)).status in (TaskStatus.BLOCKED, TaskStatus.DONE)

                await until(rests, seconds=PATIENCE_SECONDS, what="the turn")
            if answers is not None:
                asked = await swarm.task(task.task_id)
                assert asked.status_reason is StatusReason.INPUT_REQUIRED, asked.error
                await swarm.clock.advance(DAY_SECONDS)
                await swarm.board.answer(task.task_id, answers)
        ended = await swarm.task(task.task_id)
        assert ended.result is not None and ended.result.summary == "south 12, turns [1, 2, 3]"
        owners = [(await swarm.store.get(f"agent_runs/{task.task_id}.{epoch}")).data["agent_id"] for epoch in (1, 2, 3)]
        assert len(set(owners)) == 3, "three processes had a turn each"


async def test_request_clarifier_asks_for_missing_details() -> None:
    async with open_test_swarm() as swarm:
        core = replace(swarm.core, catalog=load_catalog([packaged_path("skills")]))
        await swarm.submit("write up the migration", skill="request-clarifier", context={"audience": "the board"})
        task = await one_turn(swarm, core)
        assert [question.name for question in task.questions] == ["form"]
        with pytest.raises(InvalidInput, match="is not one of"):
            await swarm.board.answer(task.task_id, {"form": "song"})
        await swarm.board.answer(task.task_id, {"form": "report"})
        task = await one_turn(swarm, core)
        assert [question.name for question in task.questions] == ["limits"]
        await swarm.board.answer(task.task_id, {"limits": "two pages"})
        task = await one_turn(swarm, core)
        assert task.result is not None
        brief = task.result.artifacts[0].value
        assert (brief["form"], brief["limits"], brief["rounds"]) == ("report", "two pages", 2)


async def test_events_dropped_from_a_full_log_are_summarised_by_memory(tmp_path: Path) -> None:
    """The summary of the memory role replaces the plain lines at the next turn."""
    lay_out_skills(tmp_path)
    chatty = SURVEY.replace("events=(note,)", "events=(note,) * 40").replace("log=(note,)", "log=(note,) * 40")
    (tmp_path / "skills" / "survey" / "scripts" / "skill.py").write_text(chatty)
    async with open_test_swarm() as swarm:
        roles = {name: card.model_copy(update={"skills": tuple(SKILLS)}) for name, card in swarm.core.roles.items()}
        core = replace(swarm.core, catalog=load_catalog([tmp_path / "skills", packaged_path("skills")]), roles=roles)
        context = {"context_id": "long"}
        for number in range(4):
            await swarm.submit(f"talk {number}", skill="survey", context=context)
            await one_turn(swarm, core)
        [summarising] = await swarm.board.list(assigned_to="memory")
        assert summarising.skill == "session-compactor"
        contexts = DocumentConversations(swarm.store, swarm.clock)
        [name] = [item.id for item in await swarm.store.query(queries.newest(CONTEXTS, "updated_at", 5))]
        before = await contexts.load(name)
        assert before is not None and before.state.summary_task == summarising.task_id and before.state.summary
        held = await swarm.claim_one("m", "memory")
        ending = await run_turn(held, core)
        await swarm.board.settle(held, ending.outcome, ending.writes)
        made = (await swarm.task(summarising.task_id)).result
        assert made is not None, "Memory did its work"
        await swarm.submit("talk on", skill="survey", context=context)
        await one_turn(swarm, core)
        after = await contexts.load(name)
        assert after is not None
        [text] = [item.value for item in made.artifacts if item.type == "session_summary"]
        assert after.state.summary.startswith(" ".join(text.split())[:100]), "the next turn took it over"
        assert before.state.summary.rpartition("\n")[2] in after.state.summary, "nothing that came since is lost"
