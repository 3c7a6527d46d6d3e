"""``swarm skills``: its output for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fireswarm.cli.shared.skills import app
from fireswarm.errors import NotFound


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty home and a folder with a valid skill, one with warnings and an invalid one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "good": "---\nname: good\ndescription: Waters plants\nallowed-tools: Read\n---\n# Good\n\n## Steps\n\nPour.\n",
        "warns": "---\ndescription: Feeds: cats\n---\n# W\n",
        "bad": "# nothing\n",
    }.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(text)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def printed(*arguments: str) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_shows_skills_warnings_and_skipped_packs(here: Path) -> None:
    result = run("list")
    assert "Waters plants" in result.output
    assert "bad/SKILL.md: it has no description" in result.output
    assert "warns/SKILL.md: it has no name" in result.output
    found = printed("list", "--json")
    assert {"good", "warns", "workspace-inventory"} <= {skill["name"] for skill in found["skills"]}
    assert [Path(entry["path"]).parent.name for entry in found["left_out"]] == ["bad"]
    assert found["warnings"]


def test_given_folder_takes_precedence_over_the_default_ones(here: Path) -> None:
    (here / "mine" / "good").mkdir(parents=True)
    (here / "mine" / "good" / "SKILL.md").write_text("---\nname: good\ndescription: mine\n---\n")
    found = printed("list", "--skills-dir", "mine", "--json")
    assert next(skill for skill in found["skills"] if skill["name"] == "good")["description"] == "mine"
    assert any("shadowed by" in entry["reason"] for entry in found["left_out"])


def test_inspect_shows_one_skill(here: Path) -> None:
    result = run("inspect", "good", "--show-frontmatter", "--show-sections")
    assert result.exit_code == 0
    assert "allowed_tools: Read" in result.output
    assert "description: Waters plants\nallowed-tools: Read" in result.output
    assert "Steps" in result.output
    shown = printed("inspect", "good", "--show-sections", "--show-frontmatter", "--json")
    assert [(section["title"], section["line"]) for section in shown["sections"]] == [("Good", 6), ("Steps", 8)]
    assert shown["frontmatter"].startswith("name: good")
    assert isinstance(run("inspect", "none").exception, NotFound)


def test_check_names_file_line_and_rule_and_fails(here: Path) -> None:
    assert run("check", "skills/good").output == "1 skill checked, no fault\n"
    result = run("check")
    assert result.exit_code == 1
    assert "skills/bad/SKILL.md:1: frontmatter-missing: " in result.output
    assert "3 skills checked" in result.output
    told = run("check", "--skills-dir", "skills", "--json")
    assert told.exit_code == 1
    assert {"path", "line", "rule", "message"} == set(json.loads(told.stdout)["faults"][0])


def test_check_without_user_skills_covers_the_packaged_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("check").exit_code == 0


def test_bench_measures_a_labelled_file_with_the_given_skills(here: Path) -> None:
    prompts = [{"skill": "good", "query": "water my plants"}, {"skill": "Gone Away", "query": "feed the cats"}]
    (here / "p.json").write_text(json.dumps([*prompts, {"skill": "Warns", "query": "feed the cats", "note": 1}]))
    figures = printed("bench", "p.json", "--skills-dir", "skills")
    assert (figures["skills"], figures["prompts"], figures["unknown_skills"]) == (2, 3, ["Gone Away"])
    assert figures["top1"] == figures["recall_at_8"] == figures["passes_55"] == pytest.approx(2 / 3, abs=1e-3)
    assert set(figures["latency_ms"]) == {"p50", "p99"}
    assert figures["index_build_seconds"] >= 0
    assert printed("bench", "p.json", "--top-k", "3")["skills"] > 9
