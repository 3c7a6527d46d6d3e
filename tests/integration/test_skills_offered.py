"""The skills that are offered: without the packaged ones if they are not wanted, without a swarm's to an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.settings import load_settings
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.opening.open_parts import load_swarm
from tests.integration.test_cli import swarm
from tests.support.commands import agent, kept
from tests.support.experts import calls

MINE = "---\nname: mine\ndescription: Does mine.\n---\nDo.\n"
THEIRS = "---\nname: handing-over\ndescription: Hands work to roles.\nmetadata: {needs: Swarm}\n---\nHand over.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {"mine": MINE, "handing-over": THEIRS}.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(text)
    return tmp_path


def listed(root: Path) -> dict[str, set[str]]:
    ran = agent(root, "skills", "list", "--json")
    assert ran.code == 0, ran.stderr
    return {key: {skill["name"] for skill in ran.json[key]} for key in ("skills", "for_swarms")}


def test_agent_is_not_offered_what_needs_a_swarm(root: Path) -> None:
    offered = listed(root)
    assert {"mine", "workspace-inventory", "csv-forecast"} <= offered["skills"]
    assert {"handing-over", "plan-objective", "code-fix"} <= offered["for_swarms"]
    assert not offered["skills"] & offered["for_swarms"]
    text = agent(root, "skills", "list").stdout
    assert "not listed, since only a swarm can run them: code-convert, code-fix" in text
    assert agent(root, "skills", "inspect", "plan-objective").code == 0
    assert "plan-objective" in swarm(root, "skills", "list").stdout


def test_naming_such_a_skill_says_what_to_do(root: Path) -> None:
    (root / "answers.json").write_text(json.dumps(["Done."]))
    ran = agent(root, "run", "plan", "--skill", "handing-over", "--script", "answers.json")
    assert ran.code == 1
    assert "skill 'handing-over' needs a swarm: start one with `swarm up`, and use `swarm submit`" in ran.stderr


@pytest.mark.parametrize("name", ["handing-over", "Plan-Objective"])
def test_model_that_names_such_a_skill_is_told(root: Path, name: str) -> None:
    answers: list[Any] = [calls(("use_skill", {"name": name, "reason": "x"})), "I did it by myself."]
    (root / "answers.json").write_text(json.dumps(answers))
    ran = agent(root, "run", "plan", "--script", "answers.json", "--json")
    assert ran.code == 0, ran.stderr
    [folder] = kept(root).glob("*-*-*")
    assert "needs a swarm" in (folder / "events.jsonl").read_text()


def test_packaged_skills_can_be_left_out(root: Path) -> None:
    (root / "agent.yaml").write_text("skills: {builtin: false}\n")
    assert listed(root) == {"skills": {"mine"}, "for_swarms": {"handing-over"}}
    (root / "swarm.yaml").write_text("skills: {builtin: false}\n")
    _, catalog, *_ = load_swarm(load_settings(root))
    assert set(catalog.skills) == {"mine", "handing-over"}
    shown = swarm(root, "skills", "list").stdout
    assert "handing-over" in shown and "workspace-inventory" not in shown


def test_skill_without_the_declaration_is_for_everybody(root: Path) -> None:
    catalog = load_catalog([root / "skills"]).without_swarm()
    assert (set(catalog.skills), set(catalog.for_swarms)) == ({"mine"}, {"handing-over"})
