"""Paths in rules are relative to the folder of the objective, wherever in it a task works, and for every reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fireswarm.agent.folder_notes import describe_folder
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.mind import gate
from fireswarm.settings import AgentSettings
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.swarm.turn.engines.changes import changes_since, head_commit
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking, told
from tests.support.repositories import plain_git
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

HIDDEN = "the-denied-content"


async def test_planned_task_in_a_subfolder_keeps_the_rules_of_its_objective(swarm: SwarmRig, tmp_path: Path) -> None:
    heard: list[str] = []

    def model(request: ChatRequest) -> dict[str, Any]:
        if "child-look" not in request.messages[0].text:
            task = {"key": "a", "assigned_to": "scout", "objective": "child-look", "context": {"path": "config"}}
            return decide(act("finish", answer="planned", result={"tasks": [task]}))
        if answers_so_far(request) == 0:
            return decide(
                act("read_file", path="prod/k.txt"), act("run_command", command="cat prod/k.txt"),
                act("read_file", path="other/k.txt"), act("search_files", pattern=HIDDEN),
            )  # fmt: skip
        heard.append(told(request))
        return decide(act("finish", answer="done"))

    core = thinking(swarm, model, tmp_path, permissions={"deny": ["Read(config/prod/**)", "Read(other/**)"]})
    for name, text in (("prod", HIDDEN), ("other", "may be read")):
        (tmp_path / "space" / "config" / name).mkdir(parents=True)
        (tmp_path / "space" / "config" / name / "k.txt").write_text(text)
    await submit(swarm, tmp_path)
    await one_turn(swarm, core)
    await one_turn(swarm, core)
    assert HIDDEN not in heard[0].replace(f"search_files: {HIDDEN}", "") and "may be read" in heard[0]


@pytest.mark.parametrize("rule", ["Skill(deploy)", "WebFetch(domain:a.org)", "Read(config/x)"])
def test_rules_hold_in_a_folder_within_the_objective(tmp_path: Path, rule: str) -> None:
    grant = Grant(tmp_path / "config", deny=(rule,), base=tmp_path)
    calls = {"Skill": "deploy", "WebFetch": "https://a.org/x", "Read": "x"}
    name = rule.partition("(")[0]
    assert isinstance(gate.decide(gate.Call(name, calls[name], name), grant), gate.Deny)


def repository(folder: Path) -> Path:
    for name in ("secrets/new.txt", "secrets/old.txt", "a.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("before\n")
    for line in ("init -q", "add a.txt secrets/old.txt", "commit -q -m one"):
        plain_git(folder, *line.split())
    for name in ("secrets/new.txt", "secrets/old.txt"):
        (folder / name).write_text(f"{HIDDEN}\n")
    (folder / "a.txt").write_text("after\n")
    return folder


def test_diff_of_a_task_leaves_out_what_may_not_be_read(tmp_path: Path) -> None:
    folder = repository(tmp_path / "ws")
    hides = DeniedReads(("Read(secrets/**)",)).hiding(folder)
    shown = changes_since(folder, head_commit(folder), hides).decode()
    assert "+after" in shown and "secrets" not in shown and HIDDEN not in shown
    (folder / "secrets" / "old.txt").rename(folder / "moved.txt")
    plain_git(folder, "add", "moved.txt")
    assert "-before\n-" not in changes_since(folder, head_commit(folder), hides).decode().partition("moved.txt")[2]


@pytest.mark.parametrize("where", [".", "part"])
def test_agent_is_told_neither_notes_nor_names_that_it_may_not_read(tmp_path: Path, where: str) -> None:
    folder = repository(tmp_path / "ws") / where
    folder.mkdir(exist_ok=True)
    (folder / "secrets").mkdir(exist_ok=True)
    for name in ("AGENTS.md", "secrets/merger.txt", "b.txt"):
        (folder / name).write_text(HIDDEN)
    plain_git(folder, "add", "--all")
    hides = DeniedReads(("Read(secrets/**)", "Read(AGENTS.md)")).hiding(folder.resolve())
    told_text = describe_folder(folder, tmp_path, hides)
    assert "b.txt" in told_text and HIDDEN not in told_text and "merger" not in told_text
    assert "AGENTS.md" not in told_text


SPELLINGS = [
    "secrets",
    "secrets/",
    "secrets/**",
    "secrets/**/",
    "/secrets/**",
    "/secrets/",
    "./secrets/",
    " secrets/** ",
]


@pytest.mark.parametrize("spelling", [*SPELLINGS, "~/ws/secrets/**", "~/ws/secrets/", "secrets//**", ".", "./"])
def test_spelling_of_a_folder_hides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "ws"
    (folder / "secrets").mkdir(parents=True)
    (folder / "secrets" / "k").write_text(HIDDEN)
    rule = f"Read({spelling})"
    AgentSettings.model_validate({"permissions": {"deny": [rule]}})
    denied = DeniedReads((rule,))
    assert denied.hides(folder / "secrets" / "k", folder) and denied.places(folder)
    assert isinstance(gate.decide(gate.read_call("secrets/k"), Grant(folder, deny=(rule,))), gate.Deny)


@pytest.mark.parametrize(
    "rule",
    [
        *("Read(../ws/secrets/**)", "Read(a/../secrets/**)", "Read(file://secrets/**)", "Read(file:secrets)"),
        *("Read($HOME/secrets/**)", "Read(~other/secrets)", 'Read("secrets/**")', "Read(secrets\\**)"),
        *("Read (secrets/**)", f"Read({'x' * 3_000})", "Edit(../x)", "read_file(../x)"),
    ],
)
def test_rule_that_would_match_nothing_is_refused_with_the_reason(rule: str) -> None:
    with pytest.raises(ValidationError, match="would match nothing|would name no tool"):
        AgentSettings.model_validate({"permissions": {"deny": [rule]}})
