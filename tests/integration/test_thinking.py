"""Roles with a model: runs are recorded event by event, and no step or model call is repeated after a crash."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Write
from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.llm.spend import StoreLedger
from fireswarm.runs.make_mind import make_mind, prompt_file
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.storage.documents.paths import run_path
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.recorder import JournalRecorder
from fireswarm.swarm.turn.turn import run_turn
from tests.support.crashes import EVERYWHERE, choose_moments
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

SKILL = (
    "---\nname: counting\ndescription: Counts things in the workspace. Use it to count.\n---\n# Counting\n\nCount.\n"
)
TURNS = 5


class Killed(BaseException):
    """Stands in for the death of the process."""


def act(tool: str, **given: Any) -> dict[str, Any]:
    return {"name": tool, "input": given}


def decide(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"text": "as told", "calls": list(calls)}


def told(request: ChatRequest) -> str:
    """All that the model is told last: the outputs of its calls, and the text."""
    last = request.messages[-1]
    return "\n".join([*(output.text for output in last.outputs), last.text])


def answers_so_far(request: ChatRequest) -> int:
    return sum(message.role == "assistant" for message in request.messages)


class Model:
    """Plans two steps per turn for five turns, then finishes; records the turn of each request."""

    def __init__(self, *, finish: dict[str, Any] | None = None) -> None:
        self.asked: list[int] = []
        self.finish = finish or act("finish", answer="counted to five")

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        turn = answers_so_far(request)
        self.asked.append(turn)
        if turn >= TURNS:
            return decide(self.finish)
        command = act("run_command", command=f"echo {turn} >> log.txt; echo did {turn}")
        return decide(command, act("read_file", path="log.txt", offset=turn + 1))


def thinking(swarm: SwarmRig, script: Any, folder: Path, **settings: Any) -> SwarmParts:
    """Return the swarm's core with a mind that asks *script*, wired as in a separate process."""
    (folder / "skills" / "counting").mkdir(parents=True, exist_ok=True)
    (folder / "skills" / "counting" / "SKILL.md").write_text(SKILL)
    (folder / "space").mkdir(exist_ok=True)
    catalog = load_catalog([folder / "skills"])
    given = swarm.core.settings.model_validate(swarm.core.settings.model_dump() | {"root": folder} | settings)
    ledger = StoreLedger(swarm.store, swarm.clock, "s1", uuid.uuid4().hex)
    mind = make_mind(
        given,
        catalog,
        swarm.clock,
        folder,
        environment={},
        store=swarm.store,
        ledger=ledger,
        model=ScriptedModel(script),
    )
    roles = {name: card.model_copy(update={"skills": ("counting",)}) for name, card in swarm.core.roles.items()}
    protocol = prompt_file(folder / "roles", "PROTOCOL.md")
    return replace(
        swarm.core, settings=given, catalog=catalog, mind=mind, roles=roles, protocol=protocol, pending=ledger
    )


async def submit(swarm: SwarmRig, folder: Path, **fields: Any) -> Task:
    context = {"path": str(folder / "space"), **fields.pop("context", {})}
    return await swarm.submit("count the things", context=context, **fields)


async def one_turn(swarm: SwarmRig, core: SwarmParts, agent: str = "agent-a", role: str = "scout") -> Task:
    held = await swarm.claim_one(agent, role)
    ending = await run_turn(held, core)
    await swarm.board.settle(held, ending.outcome, ending.writes)
    return await swarm.task(held.task.task_id)


def logged(folder: Path) -> list[str]:
    """Return the lines that the commands wrote to log.txt."""
    path = folder / "space" / "log.txt"
    return path.read_text().split() if path.exists() else []


async def reclaimed(swarm: SwarmRig) -> None:
    """Let the dead process's lease and the back-off pass."""
    for _ in range(3):
        await swarm.clock.advance(120)
        await swarm.board.sweep("scout")


async def events_of(swarm: SwarmRig, task: Task) -> list[str]:
    found: list[str] = []
    for epoch in range(1, task.epoch + 1):
        run = await swarm.store.get(run_path(task.run_id(epoch)))
        found += [str(event["type"]) for event in await read_events(swarm.store, run)]
    return found


async def test_turn_with_a_model_is_recorded_event_by_event(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Model()
    core = thinking(swarm, model, tmp_path)
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert (task.status, task.result and task.result.summary) == (TaskStatus.DONE, "counted to five")
    kinds = await events_of(swarm, task)
    assert kinds[0] == EventType.RUN_STARTED
    assert kinds[-1] == EventType.RUN_FINISHED
    assert kinds.count(EventType.LLM_RESPONSE_RECEIVED) == TURNS + 1
    assert kinds.count(EventType.SKILL_STEP_EXECUTED) == 2 * TURNS
    assert logged(tmp_path) == ["0", "1", "2", "3", "4"]


async def test_run_killed_at_any_event_resumes_without_repeating_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies at each event of a run of ten steps: no call and no step is made twice."""
    events = await lives(tmp_path / "whole", monkeypatch, kill_at=0)
    assert events > 40
    for number in choose_moments(events):
        await lives(tmp_path / f"killed-{number}", monkeypatch, kill_at=number)


def was_killed(error: BaseException) -> bool:
    """Return True if *error* is Killed or a group of nothing else."""
    return isinstance(error, Killed) or (
        isinstance(error, BaseExceptionGroup) and all(map(was_killed, error.exceptions))
    )


async def lives(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int) -> int:
    """Work on a task until it is done; the first process dies at event *kill_at*. Returns the events there were."""
    seen = 0
    real = JournalRecorder.event

    def counted(self: JournalRecorder, kind: EventType, payload: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == kill_at:
            raise Killed
        real(self, kind, payload)

    monkeypatch.setattr(JournalRecorder, "event", counted)
    model = Model()
    async with open_test_swarm() as swarm:
        asked = await submit(swarm, folder)
        try:
            task = await one_turn(swarm, thinking(swarm, model, folder), "first")
        except BaseException as error:
            if not was_killed(error):
                raise
            await reclaimed(swarm)
            task = await one_turn(swarm, thinking(swarm, model, folder), "second")
        assert (task.task_id, task.status) == (asked.task_id, TaskStatus.DONE), f"killed at {kill_at}: {task.error}"
        assert model.asked == list(range(TURNS + 1)), f"killed at {kill_at}"
        assert logged(folder) == ["0", "1", "2", "3", "4"], f"killed at {kill_at}"
        spent = await StoreLedger(swarm.store, swarm.clock, "s1", "another").session()
        assert spent.calls == TURNS + 1, f"killed at {kill_at}"
    monkeypatch.undo()
    return seen


async def test_run_killed_at_any_commit_repeats_no_command_and_no_model_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process dies during a command, the task is blocked with an explanation."""
    whole, commits = await dying_at_commit(tmp_path / "whole", monkeypatch, 0)
    assert whole == "done" and commits > 10
    outcomes = {(await dying_at_commit(tmp_path / f"c{n}", monkeypatch, n))[0] for n in choose_moments(commits)}
    assert outcomes == {"done", "uncertain"} if EVERYWHERE else "done" in outcomes


async def dying_at_commit(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int) -> tuple[str, int]:
    """Work on a task whose first process dies after commit *kill_at*. Returns how it ended, and the commits."""
    model = Model()
    async with open_test_swarm() as swarm:
        await submit(swarm, folder)
        made = 0
        real: Callable[..., Any] = swarm.store.commit

        async def commit(writes: list[Write], **options: Any) -> Any:
            nonlocal made
            done = await real(writes, **options)
            if any("agent_runs" in write.path for write in writes):
                made += 1
                if made == kill_at:
                    raise Killed
            return done

        monkeypatch.setattr(swarm.store, "commit", commit)
        try:
            task = await one_turn(swarm, thinking(swarm, model, folder), "first")
        except BaseException as error:
            if not was_killed(error):
                raise
            await reclaimed(swarm)
            task = (
                await one_turn(swarm, thinking(swarm, model, folder), "second")
                if await queued(swarm)
                else await only(swarm)
            )
        lines = logged(folder)
        assert lines == sorted(set(lines)), f"a command ran twice after commit {kill_at}"
        assert model.asked == sorted(set(model.asked)), f"a call was paid for twice after commit {kill_at}"
    if task.status is TaskStatus.DONE:
        assert lines == ["0", "1", "2", "3", "4"]
        return "done", made
    assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.ESCALATED), task
    assert "may have taken effect" in str(task.error)
    return "uncertain", made


async def queued(swarm: SwarmRig) -> bool:
    return (await only(swarm)).status is TaskStatus.QUEUED


async def only(swarm: SwarmRig) -> Task:
    [task] = await swarm.board.list()
    return task


async def test_plan_of_the_model_becomes_tasks_that_run_once(swarm: SwarmRig, tmp_path: Path) -> None:
    plan = {"tasks": [{"key": "look", "assigned_to": "scout", "objective": "look at it"}]}

    def script(request: ChatRequest) -> dict[str, Any]:
        if "# Tasks of your plan" in request.messages[0].text:
            return decide(act("finish", answer="the scout looked"))
        return decide(act("finish", answer="a plan", result=plan))

    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path, role="architect")
    waiting = await one_turn(swarm, core, role="architect")
    assert (waiting.status, waiting.status_reason) == (TaskStatus.BLOCKED, StatusReason.DELEGATING)
    [child] = [task for task in await swarm.board.list() if task.parent_task_id]
    assert (child.assigned_to, child.objective) == ("scout", "look at it")
    await swarm.settle(await swarm.claim_one())
    done = await one_turn(swarm, core, role="architect")
    assert (done.status, done.result and done.result.summary) == (TaskStatus.DONE, "the scout looked")


async def test_invalid_plan_is_returned_to_the_model_with_the_reason(swarm: SwarmRig, tmp_path: Path) -> None:
    told: list[str] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        told.extend([request.messages[-1].text, *(output.text for output in request.messages[-1].outputs)])
        role = "pilot" if len(told) == 1 else "scout"
        plan = {"tasks": [{"key": "fly", "assigned_to": role, "objective": "go"}]}
        return decide(act("finish", answer="a plan", result=plan))

    await submit(swarm, tmp_path, role="architect")
    task = await one_turn(swarm, thinking(swarm, script, tmp_path), role="architect")
    assert task.status_reason is StatusReason.DELEGATING
    assert "'pilot', which is not a role of this swarm" in told[-1]


async def test_question_blocks_the_task_and_its_answer_resumes_the_run(swarm: SwarmRig, tmp_path: Path) -> None:
    asked: list[int] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        asked.append(answers_so_far(request))
        if not answers_so_far(request):
            return decide(act("ask_user", name="colour", question="Which colour?"))
        return decide(act("finish", answer=f"it is {request.messages[-1].outputs[0].text}"))

    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, core)
    assert (waiting.status_reason, waiting.questions[0].name) == (StatusReason.INPUT_REQUIRED, "colour")
    await swarm.board.answer(waiting.task_id, {"colour": "green"})
    done = await one_turn(swarm, core, "another")
    assert done.result is not None and done.result.summary == "it is green"
    assert asked == [0, 1]


async def test_exceeded_budget_blocks_the_task_before_the_next_call(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Model()
    core = thinking(swarm, model, tmp_path, budget={"task_tokens": 6_000})
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.BUDGET_EXCEEDED)
    asked = len(model.asked)
    assert 0 < asked < TURNS
    await swarm.board.retry(task.task_id)
    more = await one_turn(swarm, thinking(swarm, model, tmp_path, budget={"task_tokens": 500_000}), "another")
    assert more.status is TaskStatus.DONE
    assert model.asked == list(range(TURNS + 1)), "what was paid for was not asked again"


async def test_session_budget_includes_the_spending_of_other_processes(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    spent = await StoreLedger(swarm.store, swarm.clock, "s1", "another").session()
    await submit(swarm, tmp_path, context={"again": 1})
    task = await one_turn(swarm, thinking(swarm, Model(), tmp_path, budget={"session_tokens": spent.tokens + 10}))
    assert task.status_reason is StatusReason.BUDGET_EXCEEDED
    assert "the session" in str(task.summary) + str(task.error)


async def test_command_of_a_read_only_task_cannot_write(swarm: SwarmRig, tmp_path: Path) -> None:
    seen: list[str] = []

    def script(request: ChatRequest) -> dict[str, Any]:
        seen.append(told(request))
        if len(seen) == 1:
            return decide(act("run_command", command="touch written.txt || echo in vain"))
        return decide(act("finish", answer="refused"))

    await submit(swarm, tmp_path, constraints={"read_only": True})
    await one_turn(swarm, thinking(swarm, script, tmp_path))
    assert not (tmp_path / "space" / "written.txt").exists()
    assert "in vain" in seen[1] and "Read-only file system" in seen[1]


async def test_role_without_a_model_runs_code_skills_and_records_the_reason(swarm: SwarmRig, tmp_path: Path) -> None:
    core = thinking(swarm, Model(), tmp_path)
    assert core.mind is not None
    keyless = replace(core, mind=replace(core.mind, client=None, no_model="ANTHROPIC_API_KEY is not set"))
    task = await submit(swarm, tmp_path)
    await one_turn(swarm, keyless)
    run = await swarm.store.get(run_path(task.run_id(1)))
    [chosen] = [event for event in await read_events(swarm.store, run) if event["type"] == "skill_chosen"]
    assert chosen["payload"]["without_model"] == "ANTHROPIC_API_KEY is not set"


async def test_run_document_records_the_total_usage(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, thinking(swarm, Model(), tmp_path))
    run = dict((await swarm.store.get(run_path(task.run_id(1)))).data or {})
    assert run["usage"]["calls"] == TURNS + 1
    assert run["usage"]["provider"] == "scripted"
    assert run["usage"]["tokens"] == run["usage"]["input_tokens"] + run["usage"]["output_tokens"]


async def test_retry_asks_the_model_again_after_an_unusable_answer(swarm: SwarmRig, tmp_path: Path) -> None:
    asked: list[int] = []

    def script(request: ChatRequest) -> dict[str, Any] | str:
        asked.append(answers_so_far(request))
        if len(asked) in (2, 3):
            return "I would rather not."
        return decide(act("run_command", command="echo one")) if len(asked) == 1 else decide(act("finish", answer="ok"))

    script.tools = False  # pyright: ignore[reportFunctionMemberAccess] - it answers with JSON
    core = thinking(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.ESCALATED and task.redo_steps == ("0/llm:2.0", "0/llm:2.1")
    await swarm.board.retry(task.task_id)
    task = await one_turn(swarm, core)
    assert (task.status, task.summary, len(asked)) == (TaskStatus.DONE, "ok", 4)


async def test_retry_with_turns_continues_where_the_turns_ended(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Model()
    core = thinking(swarm, model, tmp_path, runtime={"max_turns": 3})
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.ESCALATED and model.asked == [0, 1, 2]
    await swarm.board.retry(task.task_id, turns=4)
    task = await one_turn(swarm, core)
    assert task.status is TaskStatus.DONE and model.asked == [0, 1, 2, 3, 4, 5]
