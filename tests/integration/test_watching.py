"""``swarm cost``, ``watch`` and ``show`` on runs with a scripted model, stored in firelite."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from google.api_core import exceptions as google

from fireswarm.cli.shared.console import CleanConsole
from fireswarm.cli.swarm import cost
from fireswarm.cli.watch import progress, task_view
from fireswarm.cli.watch.follow import EARLIER_RUNS, RunPrinter, RunReader, tail
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, TokenUsage
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.outcome import Retry
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.runs.make_mind import make_mind
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.storage.documents.paths import run_path
from fireswarm.storage.firestore.store import COMMIT_ATTEMPTS
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.spending import read_spending
from fireswarm.swarm.turn.recorder import LIVE_SECONDS
from fireswarm.swarm.turn.turn import run_turn
from tests.support.swarm import SwarmRig
from tests.support.unreliable import unreliable

pytestmark = pytest.mark.anyio

SKILL = (
    "---\nname: counting\ndescription: Counts things in the workspace. Use it to count.\n---\n# Counting\n\nCount.\n"
)
TURNS = 6
USAGE = TokenUsage(input_tokens=100, cached_tokens=900, output_tokens=50, thinking_tokens=20)


def counting(request: ChatRequest) -> ChatResponse:
    """Run one command per turn, then finish."""
    turn = sum(message.role == "assistant" for message in request.messages)
    call = {"name": "run_command", "input": {"command": f"echo did {turn}"}}
    answer = {"text": "counted", "calls": []} if turn == TURNS else {"text": "as told", "calls": [call]}
    return ChatResponse(text=json.dumps(answer), usage=USAGE, model="tiny-1")


counting.tools = False  # pyright: ignore[reportFunctionMemberAccess] - it answers with JSON


def thinking(
    swarm: SwarmRig, folder: Path, script: Any = counting, *, name: str = "tiny-1", **settings: Any
) -> SwarmParts:
    """Return the swarm's core with a mind that asks *script*; prices come from *settings*, if any."""
    (folder / "skills" / "counting").mkdir(parents=True, exist_ok=True)
    (folder / "skills" / "counting" / "SKILL.md").write_text(SKILL)
    (folder / "space").mkdir(exist_ok=True)
    catalog = load_catalog([folder / "skills"])
    given = swarm.core.settings.model_validate(swarm.core.settings.model_dump() | {"root": folder} | settings)
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script, name)
    mind = make_mind(given, catalog, swarm.clock, folder, environment={}, store=swarm.store, model=model)
    roles = {role: card.model_copy(update={"skills": ("counting",)}) for role, card in swarm.core.roles.items()}
    return replace(swarm.core, settings=given, catalog=catalog, mind=mind, roles=roles, protocol="Answer.")


async def submit(swarm: SwarmRig, folder: Path, objective: str = "count the things", **fields: Any) -> Task:
    return await swarm.submit(objective, context={"path": str(folder / "space")}, **fields)


async def one_turn(swarm: SwarmRig, core: SwarmParts, role: str = "scout") -> HeldLease:
    held = await swarm.claim_one("agent-a", role)
    ending = await run_turn(held, core)
    await swarm.board.settle(held, ending.outcome, ending.writes)
    return held


# ── swarm cost ────────────────────────────────────────────────────────────────────────────────────────

PRICED: dict[str, Any] = {"budget": {"prices": {"tiny-1": {"input": 10.0, "cached": 1.0, "output": 100.0}}}}
USD = (100 * 10 + 900 * 1 + 50 * 100) / 1_000_000


async def test_spending_is_summed_by_objective_role_and_model(swarm: SwarmRig, tmp_path: Path) -> None:
    scouted = await submit(swarm, tmp_path)
    await one_turn(swarm, thinking(swarm, tmp_path, **PRICED))
    await submit(swarm, tmp_path, "count them again", role="executor")
    await one_turn(swarm, thinking(swarm, tmp_path, name="unknown-2"), "executor")
    await swarm.submit("without a model", skill="noop")
    await one_turn(swarm, swarm.core)
    spent = await read_spending(swarm.core.store, 10)
    calls = TURNS + 1
    assert (spent.runs, spent.more) == (3, False)
    told = spent.fields()
    assert told["total"]["calls"] == 2 * calls
    assert told["by_model"]["scripted tiny-1"] == {
        "calls": calls,
        "tokens": calls * 1_050,
        "input_tokens": calls * 100,
        "cached_tokens": calls * 900,
        "cache_write_tokens": 0,
        "output_tokens": calls * 50,
        "thinking_tokens": calls * 20,
        "usd": round(calls * USD, 6),
        "unpriced_calls": 0,
    }
    assert told["by_model"]["scripted unknown-2"]["unpriced_calls"] == calls
    assert list(told["by_role"]) == ["scout", "executor"], "the dearest first"
    [first, second] = told["by_objective"]
    assert (first["chain_id"], first["objective"]) == (scouted.task_id, "count the things")
    assert (second["objective"], second["usd"]) == ("count them again", 0)


async def test_show_names_the_cost_of_an_objective_with_its_tasks(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fireswarm.cli.shared.options as common

    screen = recording(monkeypatch, task_view, common)
    root = await submit(swarm, tmp_path, role="architect")
    planned = {"tasks": [{"key": "a", "assigned_to": "scout", "objective": "look"}]}

    def plan(request: ChatRequest) -> ChatResponse:
        call = {"name": "finish", "input": {"answer": "a plan", "result": planned}}
        return ChatResponse(text=json.dumps({"text": "", "calls": [call]}), usage=USAGE, model="tiny-1")

    plan.tools = False  # pyright: ignore[reportFunctionMemberAccess] - it answers with JSON
    for role, script in (("architect", plan), ("scout", counting)):
        await one_turn(swarm, thinking(swarm, tmp_path, script, **PRICED), role)
    task_view.draw(await task_view.look(swarm.client, await swarm.task(root.task_id)), events=0, level="info")
    calls = 1 + TURNS + 1
    assert f"models {calls * USD:.4f} USD, {calls * 1_050:,} tokens, {calls} calls, with all its tasks" in (
        " ".join(screen.export_text().split())
    )


async def test_call_paid_before_a_retry_is_counted_once(swarm: SwarmRig, tmp_path: Path) -> None:
    core = thinking(swarm, tmp_path, counting, budget={"task_tokens": 6_000})
    task = await submit(swarm, tmp_path)
    await one_turn(swarm, core)
    before = await read_spending(swarm.core.store, 10)
    assert 0 < before.total.counts["calls"] < TURNS
    await swarm.board.retry(task.task_id)
    await one_turn(swarm, thinking(swarm, tmp_path))
    after = await read_spending(swarm.core.store, 10)
    assert (await swarm.task(task.task_id)).status is TaskStatus.DONE
    assert (after.runs, after.total.counts["calls"]) == (2, TURNS + 1)


async def test_cost_reads_only_the_newest_runs_and_reports_the_limit(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = thinking(swarm, tmp_path)
    for number in range(3):
        await submit(swarm, tmp_path, f"count {number}", session="s1" if number else "other")
        await one_turn(swarm, core)
        await swarm.clock.advance(1)
    spent = await read_spending(swarm.core.store, 2)
    assert (spent.runs, spent.more, spent.total.counts["calls"]) == (2, True, 2 * (TURNS + 1))
    assert (await read_spending(swarm.core.store, 10, "other")).total.counts["calls"] == TURNS + 1
    screen = CleanConsole(width=160, record=True, file=io.StringIO())
    monkeypatch.setattr(cost, "console", screen)
    cost.draw(spent)
    shown = screen.export_text()
    assert "in the newest 2 runs; older runs were not read: raise --limit" in shown
    assert "no price for: tiny-1; set budget.prices" in shown


# ── swarm watch and show ──────────────────────────────────────────────────────────────────────────────


def recording(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> CleanConsole:
    screen = CleanConsole(width=200, record=True, file=io.StringIO())
    for module in modules:
        monkeypatch.setattr(module, "console", screen)
    return screen


async def test_run_reader_returns_each_event_once_across_pages(swarm: SwarmRig, tmp_path: Path) -> None:
    """One reader looks after every commit of a run and a second one only at the end: both read the same events."""
    await submit(swarm, tmp_path)
    core = thinking(swarm, tmp_path)
    held = await swarm.claim_one()
    path = run_path(held.run_id)
    reader, told = RunReader(swarm.store), list[Any]()
    real: Callable[..., Any] = swarm.store.commit

    async def commit(writes: Any, **options: Any) -> Any:
        done = await real(writes, **options)
        told.extend(await reader.news(await swarm.store.get(path)))
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swarm.store, "commit", commit)
        ending = await run_turn(held, core)
        await swarm.board.settle(held, ending.outcome, ending.writes)
    run = await swarm.store.get(path)
    assert (run.data or {})["journal_pages"] > 2
    every = await read_events(swarm.store, run)
    assert told == every
    assert await RunReader(swarm.store).news(run) == every
    assert await reader.news(run) == []


async def test_watch_prints_events_and_streamed_text_live(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = recording(monkeypatch, progress)
    speaks, go_on, heard = anyio.Event(), anyio.Event(), list[str]()

    class Speaking(ScriptedModel):
        async def complete(self, request: ChatRequest, on_text: Any = None, on_broken: Any = None) -> ChatResponse:
            if on_text is not None and not speaks.is_set():
                on_text("I shall look at the folder ")
                speaks.set()
                await go_on.wait()
            return await super().complete(request, None)

    task = await submit(swarm, tmp_path)
    core = thinking(swarm, tmp_path, Speaking(counting))
    follower = RunPrinter(swarm.client, task.task_id, screen)
    async with anyio.create_task_group() as group:
        group.start_soon(partial(progress.follow, swarm.client, task.task_id, runs=follower))
        group.start_soon(one_turn, swarm, core)
        await speaks.wait()
        while not heard:
            await swarm.clock.advance(LIVE_SECONDS)
            heard += [words for _, _, words in follower.speaking()]
        assert "run_started" in screen.export_text(clear=False)
        go_on.set()
    assert heard[0] == "I shall look at the folder"
    shown = screen.export_text()
    lines = [line for line in shown.splitlines() if "skill_step_executed" in line]
    assert [f"`echo did {turn}`: ok (0) did {turn}" in line for turn, line in enumerate(lines)] == [True] * TURNS
    assert task.task_id[:8] in lines[0]
    assert shown.count("run_finished") == 1


async def test_unavailable_store_during_streaming_does_not_fail_the_run(swarm: SwarmRig, tmp_path: Path) -> None:
    calls = 0

    class Speaking(ScriptedModel):
        async def complete(self, request: ChatRequest, on_text: Any = None, on_broken: Any = None) -> ChatResponse:
            nonlocal calls
            calls += 1
            if on_text is not None and calls == 1:
                away = [("before", google.ServiceUnavailable("down"))] * COMMIT_ATTEMPTS
                api = unreliable(swarm, *away)
                while api.attempts <= len(away):  # until the show goes on
                    on_text("I shall look at the folder ")
                    await swarm.clock.advance(LIVE_SECONDS)
            return await super().complete(request, None)

    task = await submit(swarm, tmp_path)
    await one_turn(swarm, thinking(swarm, tmp_path, Speaking(counting)))
    assert ((await swarm.task(task.task_id)).status, calls) == (TaskStatus.DONE, TURNS + 1)


async def test_watch_prints_only_the_latest_of_the_earlier_runs(swarm: SwarmRig) -> None:
    screen = CleanConsole(width=200, record=True, file=io.StringIO())
    task = await swarm.submit("x", skill="noop", max_attempts=20)
    for number in range(EARLIER_RUNS + 3):
        held = await swarm.claim_one()
        journal = await swarm.journal(held)
        journal.note("turn_failed", error=f"failure {number}")
        also = journal.closing(RunStatus.ERROR, "no", None, "no")
        await swarm.board.settle(held, Retry("no"), also)
        await swarm.clock.advance(400)
        await swarm.board.sweep("scout")
    follower = RunPrinter(swarm.client, task.task_id, screen)
    for _ in range(2):
        await follower.finish()
    told = [line.rpartition(" ")[2] for line in screen.export_text().splitlines()]
    assert told == [str(number) for number in range(3, EARLIER_RUNS + 3)]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("plain words", "plain words"),
        ('{"text": "I look at', "I look at"),
        ('{"text": "so", "calls": [{"name": "finish", "input": {"answer": "A \\"b\\"\\nc', 'A "b" c'),
        ('ing", "calls": [', 'ing", "calls": ['),
        ("x" * 500, "…" + "x" * 160),
    ],
)
async def test_tail_extracts_the_current_sentence_of_an_unfinished_decision(words: str, shown: str) -> None:
    assert tail(words) == shown


async def test_show_prints_the_last_events_of_a_long_run(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fireswarm.cli.shared.options as common

    screen = recording(monkeypatch, task_view, common)
    task = await submit(swarm, tmp_path)
    await one_turn(swarm, thinking(swarm, tmp_path))
    seen = await task_view.look(swarm.client, await swarm.task(task.task_id))
    task_view.draw(seen, events=3, level="debug")
    shown = screen.export_text().split("events of the last run")[1].strip().splitlines()
    assert f"{len(seen.events) - 3} earlier events" in shown[0]
    assert len(shown) == 4
    assert "run_finished" in shown[-1] and "7 turns" in shown[-1]


async def test_show_prints_the_events_of_a_run_without_a_model(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = recording(monkeypatch, task_view)
    await swarm.submit("x", skill="noop")
    held = await one_turn(swarm, swarm.core)
    seen = await task_view.look(swarm.client, await swarm.task(held.task.task_id))
    task_view.draw(seen, events=20, level="info")
    assert "step_finished               skill:noop" in screen.export_text()
