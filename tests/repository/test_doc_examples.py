"""The examples of the tutorials and of the testing page run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.llm.providers.scripted import load_script
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.roles.card import load_roles
from tests.support.pages import DOCS, FENCE, read

FIRST_SKILL, TESTING = DOCS / "tutorials" / "first-skill.md", DOCS / "how-to" / "testing.md"
NAMED_FILE = re.compile(r"^`((?:roles|skills)/[^`]+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the role and the skill of the first tutorials to a new folder and make it the current one."""
    files = NAMED_FILE.findall(read(FIRST_SKILL))
    for name, content in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
    assert len(files) == 3
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python_block(page: Path, containing: str) -> dict[str, Any]:
    """Execute the one Python block of a page that holds *containing*; returns its names."""
    [code] = [code for language, code in FENCE.findall(read(page)) if language == "python" and containing in code]
    names: dict[str, Any] = {"Path": Path}
    exec(compile(textwrap.dedent(code), f"{page.name}: {containing}", "exec", dont_inherit=True), names)
    return names


def test_role_and_skill_of_the_tutorial_can_be_loaded(example: Path) -> None:
    catalog = load_catalog([example / "skills"])
    roles = load_roles(example / "roles")
    assert (list(catalog.skills), catalog.left_out) == (["count-words"], ())
    assert (list(roles), roles["librarian"].skills) == (["librarian"], ("count-words",))
    assert catalog.get("count-words").entry == Path("scripts/skill.py")


def test_skill_test_of_the_testing_page_passes(example: Path) -> None:
    names = python_block(TESTING, "def test_it_counts")
    test: Callable[[Path], None] = names["test_it_counts"]
    test(example)
    assert (example / "words.txt").read_text() == "3\n"


def test_worker_example_of_the_testing_page_runs(example: Path) -> None:
    note = example / "note.txt"
    note.write_text("one two three four five\n")
    work = python_block(TESTING, "async def work")["work"]
    assert anyio.run(work, example, note) == "note.txt has 5 words"


# ── the scripted model of the testing page ────────────────────────────────────────────────────────────


def named_file(page: Path, name: str, folder: Path) -> Path:
    """Write the file that a page shows under its name."""
    [content] = re.findall(rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```$", read(page), re.M | re.S)
    (folder / name).write_text(content)
    return folder / name


def test_scripted_role_example_of_the_testing_page_runs(example: Path) -> None:
    note = example / "note.txt"
    note.write_text("one two three\n")
    named_file(TESTING, "answers.py", example)
    work = python_block(TESTING, "async def think_and_work")["think_and_work"]
    assert anyio.run(work, example, note) == "Counted: note.txt has 3 words"


def test_agent_example_of_the_testing_page_runs(example: Path) -> None:
    note = example / "note.txt"
    note.write_text("one two\n")
    script = load_script(f"{named_file(TESTING, 'answers.py', example).name}:answer", example)
    run = python_block(TESTING, "async def run_the_skill")["run_the_skill"]
    assert anyio.run(run, example, note, script) == ("Counted: note.txt has 2 words", ["ok"])
