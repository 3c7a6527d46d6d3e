"""Branch coverage of code in child processes, which measure themselves when coverage is on; a repository of git."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from coverage import Coverage

from fireswarm.processes import child_pool
from tests.support.repositories import plain_git

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def measure_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python processes that a test starts read coverage's settings, and keep their data beside the parent's."""
    if Coverage.current() is not None:
        monkeypatch.setenv("COVERAGE_PROCESS_START", str(ROOT / "pyproject.toml"))
        monkeypatch.setenv("COVERAGE_FILE", str(ROOT / ".coverage"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits, a changed file and one that git does not know."""
    folder = tmp_path / "repository"
    folder.mkdir()
    plain_git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(2):
        (folder / "a.txt").write_text(f"{number}\n")
        plain_git(folder, "add", "--all")
        plain_git(folder, "commit", "--quiet", "--message", f"commit {number}")
    (folder / "a.txt").write_text("changed\n")
    (folder / "new.txt").write_text("new\n")
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that leaves a mark for each start."""
    place = tmp_path / "evil"
    place.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/ran\nexit 1\n')
    place.chmod(0o755)
    return place


@pytest.fixture
def children_import_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the child processes import functions of the tests, which are in the current folder."""
    monkeypatch.setattr(child_pool, "import_folders", lambda: [*sys.path])
