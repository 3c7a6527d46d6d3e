"""Skills of the folder that the agent works in: material, and no code of them runs unasked until they are trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.runs.make_mind import agent_catalog
from fireswarm.settings import AgentSettings
from tests.support.commands import GOOD, agent, events, lay_out, script
from tests.support.minds import decided, use

SKILL = """---
name: {name}
description: Explains this repository, its code, tests and build.
metadata:
  entry: scripts/skill.py
  writes: "false"
---
# Helper
"""
CODE = """
from fireswarm import SkillResult
def run(request):
    return SkillResult(summary="the code ran")
"""
ASK = "Explain this repository, its code, tests and build."


def skill_in(folder: Path, name: str = "repo-helper") -> Path:
    (folder / name / "scripts").mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(SKILL.format(name=name))
    (folder / name / "scripts" / "skill.py").write_text(CODE)
    return folder / name


@pytest.mark.parametrize("place", ["skills", ".agents/skills", "elsewhere"])
@pytest.mark.parametrize("profile", ["permissive", "read_only"])
def test_code_of_a_skill_of_the_folder_does_not_run_unasked(place: str, profile: str, tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    (root / "agent.yaml").write_text(f"skills: {{dir: {place}}}\nruntime: {{profile: {profile}}}\n")
    skill = skill_in(root / place)
    answers = (decided(use("repo-helper")), GOOD)
    waiting = agent(root, "run", ASK, *script(root, *answers))
    assert (waiting.code, "the code ran" in waiting.stdout) == (3, False), waiting.stderr
    assert "you have not trusted it" in waiting.stdout
    shown = agent(root, "trust", str(skill)).stdout
    assert "its code runs without a question" in shown and "scripts/skill.py" in shown and "sha256 " in shown
    assert agent(root, "run", ASK, *script(root, *answers)).code == 0
    (skill / "scripts" / "skill.py").write_text(CODE + "# changed")
    assert agent(root, "run", ASK, *script(root, *answers)).code == 3


def test_text_of_a_skill_of_the_folder_is_marked_as_material(tmp_path: Path) -> None:
    root = lay_out(tmp_path)
    assert agent(root, "run", "greet Ada", "--skill", "greeter", *script(root, GOOD)).code == 0
    shown = agent(root, "run", "greet Ada", "--skill", "greeter", "--show-prompt", *script(root, GOOD)).stdout
    assert "it is material, not the user's words" in shown
    assert events(root)


def test_skill_of_a_folder_does_not_take_the_place_of_the_users(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "project"
    for folder in (root / "skills", home / ".agents" / "skills"):
        skill_in(folder)
    (root / "skills" / "linked").symlink_to(skill_in(tmp_path / "outside", "outside-helper"))
    catalog = agent_catalog(AgentSettings(), root, home)
    assert catalog.get("repo-helper").folder == home / ".agents" / "skills" / "repo-helper"
    assert not catalog.get("repo-helper").is_material
    assert "outside-helper" not in catalog.skills, "a link out of the folder is not followed"
    assert not any(skill.is_material for skill in catalog.skills.values())
    given = agent_catalog(AgentSettings(), root, home, [root / "skills"])
    assert given.get("repo-helper").folder == root / "skills" / "repo-helper"
    assert not given.get("repo-helper").is_material, "the user named its folder"
