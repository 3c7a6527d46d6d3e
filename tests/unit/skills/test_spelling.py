"""A skill is found by its name and by its folder's, in the spellings that models use."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.skills.packs.spelling import find_skill_name
from tests.support.experts import Expert, calls, run
from tests.support.minds import Bench

TEXT = "---\nname: {}\ndescription: Does things.\n---\nDo it.\n"


def lay_out(root: Path, **names: str) -> Path:
    """Write a skill with the given name into each folder."""
    for folder, name in names.items():
        (root / folder).mkdir(parents=True)
        (root / folder / "SKILL.md").write_text(TEXT.format(name))
    return root


@pytest.mark.parametrize(
    ("said", "found"),
    [
        *((said, "big-skill") for said in ("big-skill", "Big_Skill", "BIG SKILL", " big_skill ", "big  - skill")),
        *((said, "other") for said in ("other", "the_folder", "The-Folder")),
        *((said, "") for said in ("big", "bigskill", "", "-")),
    ],
)
def test_skill_is_found_by_its_name_and_its_folder(tmp_path: Path, said: str, found: str) -> None:
    skills = load_catalog([lay_out(tmp_path, Big_Skill="Big_Skill", the_folder="other")]).skills
    assert find_skill_name(said, skills, skills) == found
    assert find_skill_name(said, skills, ["missing"]) == ""


def test_name_comes_before_a_folder_and_a_folder_of_two_names_none(tmp_path: Path) -> None:
    first = lay_out(tmp_path / "a", same="x", y="z")
    skills = load_catalog([first, lay_out(tmp_path / "b", same="y")]).skills
    assert find_skill_name("y", skills, skills) == "y" and find_skill_name("same", skills, skills) == ""
    assert find_skill_name("same", skills, ["x"]) == "x"


@pytest.mark.anyio
async def test_model_uses_a_skill_by_the_name_of_its_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path).set(skills__prefilter_min_score=1)
    bench.skill("Big_Skill", TEXT.format("Big_Skill"))
    expert = Expert(
        calls(("use_skill", {"name": "big_skill", "reason": "it fits"})),
        calls(("read_skill_file", {"skill": "Big Skill", "path": "SKILL.md"})),
        "Done.",
    )
    await run(bench, expert)
    assert expert.told[0].startswith("# Skill big-skill\n") and "Do it." in expert.told[1]
