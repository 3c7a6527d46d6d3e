"""The commands print texts of tasks as they are, and the answer of a task whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.console import Console

from fireswarm.cli.shared.options import console as standard_output
from fireswarm.cli.watch.answer import print_answer
from fireswarm.contracts.ports import Create
from fireswarm.contracts.skills.artifact import STORED_VALUE, Artifact
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Done, Handoff
from fireswarm.contracts.swarm.task import TaskResult, TaskSpec
from fireswarm.settings import load_settings
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from tests.integration.test_cli import swarm

HOSTILE = "see [/foo] and [bold]this[/bold] and :smile: in a[0]"
LONG = "\n".join(f"{number}. item {number} of a long answer" for number in range(1, 400)) + "\n\nThe **last** line."
FACT = {"type": "fact", "bucket": HOSTILE, "key": HOSTILE, "value": HOSTILE, "session_hash": "default"}


async def claim(opened: SwarmParts, role: str) -> HeldLease:
    [held] = await opened.board.claimer(role, f"{role}-1").claim(1)
    return held


def finished(root: Path, summary: str, content: str = "", **fields: Any) -> str:
    """Store a finished task with a child, a run and a fact. With *content* or *fields*, it has an answer artifact."""

    async def work() -> str:
        async with open_parts(load_settings(root, overrides={"store.uri": "embedded"})) as opened:
            spec = TaskSpec(objective=HOSTILE, assigned_to="architect", session_hash=opened.settings.session)
            task = (await opened.board.submit(spec)).task
            planned = PlannedTask(key="look", assigned_to="scout", objective=HOSTILE)
            handoff = Handoff((planned,), result=TaskResult(summary=HOSTILE))
            await opened.board.settle(await claim(opened, "architect"), handoff)
            await opened.board.settle(await claim(opened, "scout"), Done(TaskResult(summary=HOSTILE)))
            if content:
                fields["uri"] = await opened.blobs.put("default/answer.json", json.dumps(content).encode())
            answers = (Artifact(type="answer", name="answer", mime=STORED_VALUE, **fields),) if fields else ()
            result = TaskResult(summary=summary, artifacts=answers, insights=(HOSTILE,))
            await opened.board.settle(await claim(opened, "architect"), Done(result))
            await opened.store.commit([Create("mcp_memory/odd", FACT | {"created_at": opened.clock.now()})])
            return task.task_id

    return anyio.run(work)


COMMANDS = ("tasks", "show TASK", "watch TASK", "runs", "agents", "mail", "memory", "cost")


def test_texts_of_tasks_are_never_parsed_as_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard_output, "_width", 200)
    task_id = finished(tmp_path, HOSTILE)
    shown: dict[str, str] = {}
    for words in [*(command.replace("TASK", task_id).split() for command in COMMANDS), ["submit", HOSTILE, "--wait"]]:
        done = swarm(tmp_path, *words)
        assert done.returncode == 0, (words, done.stderr)
        assert done.stderr == "", words
        shown[words[0]] = " ".join(done.stdout.split())
    for name in ("tasks", "show", "watch", "memory", "submit"):
        assert HOSTILE in shown[name], (name, shown[name])


def test_show_and_wait_print_a_long_answer_whole(tmp_path: Path) -> None:
    task_id = finished(tmp_path, LONG[:1_500], LONG)
    for words in (("show", task_id), ("watch", task_id), ("submit", HOSTILE, "--wait")):
        assert LONG in swarm(tmp_path, *words).stdout, words


def test_answer_whose_file_is_gone_is_replaced_by_the_summary(tmp_path: Path) -> None:
    task_id = finished(tmp_path, "It is 42.", uri=(tmp_path / "gone.json").as_uri())
    assert "It is 42." in swarm(tmp_path, "show", task_id).stdout.splitlines()


@pytest.mark.parametrize(("terminal", "shown"), [(True, "1 first"), (False, "1. **first**")])
def test_answer_is_markdown_on_a_terminal_and_plain_text_in_a_pipe(
    terminal: bool, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(force_terminal=terminal, color_system=None, width=80)
    print_answer("1. **first**\n2. [link](http://example.org) <T>", console)
    printed = capsys.readouterr().out
    assert shown in printed
    assert "http://example.org" in printed
    assert "<T>" in printed
