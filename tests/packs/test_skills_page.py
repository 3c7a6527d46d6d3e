"""docs/how-to/skills.md: its example passes the check, its commands run, and its figures match the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fireswarm.cli.shared.skills import app
from fireswarm.settings.agent import SkillSettings
from fireswarm.skills.checks.pack import FIELDS, check_file
from fireswarm.skills.packs import field_values
from fireswarm.skills.packs.cache import LEAST_CACHED
from fireswarm.skills.packs.discovery import DiscoveryLimits
from fireswarm.skills.routing.router import MIN_SCORE
from tests.support.packs import REPOSITORY

PAGE = (REPOSITORY / "docs" / "how-to" / "skills.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = [line for language, code in FENCES if language == "console" for line in code.splitlines()]
SCRIPTS = re.findall(r"`(python skills/[^`]+)`", PAGE)


def test_example_skill_passes_the_check(tmp_path: Path) -> None:
    [example] = [code for language, code in FENCES if language == "markdown"]
    (tmp_path / "water-plants").mkdir()
    path = tmp_path / "water-plants" / "SKILL.md"
    path.write_text(example)
    assert check_file(path) == ()
    path.write_text(example.replace("name: water-plants", "name: water-plant"))
    [shown] = [line for language, code in FENCES if not language for line in code.splitlines() if ":2: " in line]
    assert str(check_file(path)[0]).replace(str(path), "skills/water-plants/SKILL.md") == shown


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_the_page_succeeds(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(REPOSITORY)
    program, group, *arguments = shlex.split(command)
    assert (program, group) == ("swarm", "skills")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", SCRIPTS)
def test_script_of_the_page_succeeds(command: str) -> None:
    _, *arguments = shlex.split(command)
    done = subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_figures_of_the_page_match_the_code() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \| (?:1 to|text|tools|a map)", PAGE, re.M)) == set(FIELDS)
    limits, bounds = SkillSettings(), DiscoveryLimits()
    for text in (
        f"1 to {field_values.MAX_NAME_CHARS} of",
        f"1 to {field_values.MAX_DESCRIPTION_CHARS:,} characters",
        f"1 to {field_values.MAX_COMPATIBILITY_CHARS} characters",
        f"{limits.disclosure_max_reference_tokens:,} tokens (`skills.disclosure_max_reference_tokens`",
        f"{bounds.max_folders:,} folders;",
        f"score of {MIN_SCORE:.0f} or more",
        f"From {LEAST_CACHED} skills on",
    ):
        assert text in PAGE
    assert (bounds.max_depth, "six levels and" in PAGE) == (6, True)
