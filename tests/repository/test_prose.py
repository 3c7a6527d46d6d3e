"""The wording gate counts discouraged phrases, and its counts may only shrink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import prose

CLEAN = '"""Load the settings."""\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository in which `is no` may occur once and `nobody` never."""
    for folder in ("src", "skills", "docs", "tests", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "old.py").write_text('MESSAGE = "this is no task"\n')
    (tmp_path / prose.COUNTS).write_text("{}")
    (tmp_path / prose.COUNTS).write_text(prose.lowered(tmp_path))
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)


def test_recorded_counts_pass(root: Path) -> None:
    write(root, "src/clean.py", CLEAN)
    assert list(prose.faults(root)) == []
    assert prose.allowed(root)["is no"] == {"src/old.py": 1}


@pytest.mark.parametrize(
    ("name", "text", "line", "kind"),
    [
        ("src/new.py", '"""Load.\n\nIt is no file.\n"""\n', 3, "is no"),
        ("src/new.py", 'raise ValueError("one\\n" "this is "\n    "no task")\n', 1, "is no"),
        ("src/new.py", "x = 1\n# whoever reads this\n", 2, "whoever"),
        ("src/new.py", 'x = 1\ny = f"{x} of its own"\n', 2, "of its own"),
        ("skills/new.py", 'def f():\n    """What a task is."""\n', 2, prose.OPENING),
        ("src/new.py", 'LIMIT = 5\n"""How many tasks there are."""\n', 2, prose.OPENING),
        ("docs/page.md", "# Page\n\nNobody waits.\n", 3, "nobody"),
        ("docs/page.md", "# Page\n\nThis is no\npage.\n", 3, "is no"),
        ("README.md", "Stands beside it.\n", 1, "beside"),
        ("tests/test_new.py", "\n\nasync def test_a_place_that_is_no_page_fails() -> None: ...\n", 3, "is no"),
        ("tests/test_new.py", "def test_what_is_read() -> None: ...\n", 1, prose.OPENING),
    ],
)
def test_new_phrase_fails_with_its_file_and_line(root: Path, name: str, text: str, line: int, kind: str) -> None:
    write(root, name, text)
    [fault] = prose.faults(root)
    assert fault.startswith(f"{name}:{line}: {kind!r} 1 times, 0 allowed")


@pytest.mark.parametrize(
    "text", ["# there is no file", "# it is no longer used", "# the recommendation", "# besides", "# Whatever"]
)
def test_ordinary_english_passes(root: Path, text: str) -> None:
    write(root, "src/new.py", f"{text}\n")
    assert list(prose.faults(root)) == []


def test_code_and_test_bodies_are_not_read(root: Path) -> None:
    write(root, "src/new.py", "nobody = beside = 1\n")
    write(root, "tests/test_new.py", 'def test_nothing() -> None:\n    """What nobody reads."""\n')
    assert list(prose.faults(root)) == []


def test_phrase_moved_to_another_file_passes(root: Path) -> None:
    (root / "src" / "old.py").rename(root / "src" / "moved.py")
    assert list(prose.faults(root)) == []
    assert json.loads(prose.lowered(root))["is no"] == {"src/moved.py": 1}


def test_lower_count_fails_until_generate_records_it(root: Path) -> None:
    write(root, "src/old.py", CLEAN)
    [fault] = prose.faults(root)
    assert "'is no' is down to 0 from 1: lower the number with `make generate`" in fault
    write(root, str(prose.COUNTS), prose.lowered(root))
    assert list(prose.faults(root)) == []
    assert prose.allowed(root)["is no"] == {}


def test_generate_refuses_to_raise_a_count(root: Path) -> None:
    before = (root / prose.COUNTS).read_text()
    write(root, "src/new.py", "# this is no task either, and nobody reads it\n")
    assert prose.lowered(root) == before
    assert len(list(prose.faults(root))) == 2
