"""What commands print: why an objective stopped and how it goes on, JSON that no terminal obeys, narrow tables."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest
from rich.console import Console

from fireswarm.cli.shared.console import CleanConsole, json_text
from fireswarm.cli.swarm import inspect
from fireswarm.cli.watch import progress, results
from fireswarm.cli.watch.answer import markdown_of
from fireswarm.cli.watch.follow import RunEventPrinter
from fireswarm.cli.watch.results import MAX_LINES
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Done, Failed, Outcome, Waiting
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskResult, TaskStatus
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def swarm() -> AsyncGenerator[SwarmRig]:
    async with open_test_swarm() as opened:
        yield opened


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = CleanConsole(file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False)
    monkeypatch.setattr(progress, "console", console)
    monkeypatch.setattr(results, "console", console)
    return console


async def stopped(swarm: SwarmRig, printed: Console, outcome: Outcome) -> tuple[Task, str]:
    """Submit a task that ends so; returns it, and what `--wait` prints."""
    await swarm.submit()
    held = await swarm.claim_one()
    await swarm.settle(held, outcome)
    task = await swarm.task(held.task.task_id)
    status = await progress.report(swarm.client, task.task_id, [task], 1.0)
    assert status is TaskStatus.BLOCKED
    assert isinstance(printed.file, io.StringIO)
    return task, printed.file.getvalue()


async def test_question_is_printed_with_the_command_that_answers_it(swarm: SwarmRig, printed: Console) -> None:
    questions = (Question(name="colour", description="Which colour?"),)
    task, told = await stopped(swarm, printed, Waiting(StatusReason.INPUT_REQUIRED, "Which colour?", questions))
    assert f"swarm answer {shown_id(task.task_id)} colour=..." in told
    assert "the objective stopped (input required)" in told


async def test_dead_letter_is_called_so_with_its_reason(swarm: SwarmRig, printed: Console) -> None:
    task, told = await stopped(swarm, printed, Failed("the disk is full", StatusReason.DEAD_LETTER))
    assert "the objective stopped (dead letter)" in told
    assert "It gave up: the disk is full" in told and f"swarm retry {shown_id(task.task_id)}" in told
    assert "objective is blocked" not in told


REFUSED = "This objective needs a model; the code cannot answer it. Set A_KEY, or submit it with --best-effort."


async def test_refused_objective_is_explained_once(swarm: SwarmRig, printed: Console) -> None:
    task, told = await stopped(swarm, printed, Waiting(StatusReason.NEEDS_MODEL, REFUSED))
    assert told.count("--best-effort") == 1
    assert f"{REFUSED} Then run `swarm retry {shown_id(task.task_id)}`" in told
    run = {"task_id": task.task_id, "role": task.assigned_to}
    now = datetime.now(UTC)
    RunEventPrinter(printed, "info").print(run, [{"type": "turn_failed", "ts": now, "payload": {"error": REFUSED}}])
    assert isinstance(printed.file, io.StringIO)
    assert printed.file.getvalue().endswith("turn_failed                 This objective needs a model\n")


def test_step_that_stops_to_ask_did_not_fail(printed: Console) -> None:
    asked = {"step": f"0/approve:1.1/{'7' * 40}:74234e98afe7498f", "error": "NeedsAnswer: Allow Bash: make clean"}
    failed = {"step": "0/llm:1.0:74234e98afe7498f", "error": "it answered 400"}
    events = [{"type": "step_failed", "ts": datetime.now(UTC), "payload": payload} for payload in (asked, failed)]
    RunEventPrinter(printed, "info").print({"task_id": "t", "role": "scout"}, events)
    assert isinstance(printed.file, io.StringIO)
    first, second = printed.file.getvalue().splitlines()
    assert first.endswith("question                    asked for approval: make clean")
    assert second.endswith("step_failed                 0/llm:1.0: it answered 400")


MADE = {
    "checklist.md": ("checklist", "# Checklist\n\n- [ ] water the basil\n"),
    "hits.md": ("keyword_list", "".join(f"- line {number}\n" for number in range(MAX_LINES + 2))),
    "hits.json": ("keyword_hits", "{}"),
    "inventory.json": ("inventory", "{}"),
    "table.csv": ("file", "a,b\n"),
}


async def test_lists_are_printed_with_the_paths_of_all_files(swarm: SwarmRig, printed: Console) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    artifacts = [
        Artifact(type=kind, name=name, uri=await swarm.core.blobs.put(f"t/{name}", text.encode()))
        for name, (kind, text) in MADE.items()
    ]
    await swarm.settle(held, Done(TaskResult(summary="made", artifacts=tuple(artifacts))))
    task = await swarm.task(held.task.task_id)
    assert await progress.report(swarm.client, task.task_id, [task], 1.0) is TaskStatus.DONE
    assert isinstance(printed.file, io.StringIO)
    told = printed.file.getvalue()
    assert "- [ ] water the basil\n- line 0\n" in told
    assert f"- line {MAX_LINES - 1}\n[2 further lines in the file]\n" in told
    paths = [line.partition(": ") for line in told.splitlines() if line.endswith(tuple(MADE))]
    assert [kind for kind, _, _ in paths] == ["checklist", "keyword_list", "keyword_hits", "file"]
    assert [await swarm.core.blobs.get(f"file://{path}") for _, _, path in paths[:2]] == [
        MADE[name][1].encode() for name in ("checklist.md", "hits.md")
    ]


@pytest.mark.parametrize("mark", ["\x9b", "\x7f", "\u202e", "\u2066", "\u061c", "\u2028", "\ud800"])
def test_json_escapes_what_a_terminal_obeys(mark: str) -> None:
    text = json_text({"a": f"x{mark}ä"})
    assert mark not in text and "ä" in text
    assert json.loads(text) == {"a": f"x{mark}ä"}


def test_memory_fits_a_terminal_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [
        {
            "id": "fact-0123456789abcdef0123456789abcdef01234567",
            "type": "fact",
            "bucket": "workspace",
            "key": "folder-8d3ea91fe2bc:largest_files:by_lines",
            "value": "w " * 80,
        },
        {"type": "session_summary", "session_hash": "s", "text": "summary " * 30},
    ]
    console = CleanConsole(file=io.StringIO(), width=100, force_terminal=True, color_system=None, highlight=False)
    monkeypatch.setattr("fireswarm.cli.shared.tables.console", console)
    inspect.print_memory(facts)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    text = " ".join(lines)
    assert all(
        word in text
        for word in ("type", "key", "learned", "session_summary", "workspace/folder-8d3ea91fe2", "01234567", "w w w")
    )
    key = "".join(line.split("│")[4].strip() for line in lines if "│" in line)
    assert key == f"workspace/{facts[0]['key']}"


def test_table_of_an_answer_has_one_empty_line_around_it() -> None:
    console = CleanConsole(file=io.StringIO(), width=60, highlight=False)
    console.print(markdown_of("Before.\n\n| file | change |\n| --- | --- |\n| a.py | one |\n\nAfter."))
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[:3] == ["Before.", "", "file  change"] and lines[4:] == ["a.py  one", "", "After."]
