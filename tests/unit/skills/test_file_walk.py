"""The walk leaves out exactly what git ignores."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fireswarm import LeftOut
from fireswarm.skills.file_walk import walk_folders
from fireswarm.skills.text_files import walk_files

NAMES = ("a", "b.log", "build", "keep.log", "x y")
PATTERNS = (
    *(
        "a",
        "/a",
        "a/",
        "*.log",
        "!keep.log",
        "build/",
        "/build/*",
        "!build/keep.log",
        "**/b.log",
        "build/**/a",
        "*",
        "!*/",
    ),
    *("!*.log", "# a", "", "\\#a", "x y", "x*", "[ab]*", "!", "a/build", "!/a", "b.log ", "build/a/"),
    *("build/**", "/**", "a/*/", "*/a", "!build/*/", "**/", "!a/**"),
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


def lay_out(root: Path, paths: list[str], rules: dict[str, list[str]]) -> None:
    for path in paths:
        file = root / path
        if not file.exists() and all(not each.is_file() for each in file.parents):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
    for folder, lines in rules.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_text("\n".join(lines))


def walked(root: Path, start: str = ".") -> list[str]:
    folders = walk_folders(root / start, top=root, skips=".git".__eq__, left_out=lambda _: None)
    return sorted((where / name).relative_to(root).as_posix() for where, _, files in folders for name in files)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PATHS, min_size=1, max_size=12),
    st.dictionaries(st.sampled_from([".", "a", "build", "a/build"]), st.lists(st.sampled_from(PATTERNS), max_size=5)),
)
@example(["b.log/b.log", "a/b.log", "a/x y/keep.log"], {".": ["*", "!*.log"]})
@example(["build/keep.log", "build/a/keep.log", "build/x y"], {".": ["build/**", "!build/keep.log", "!build/a/"]})
@example(["a/b.log/a", "b.log/x y"], {".": ["a", "!a", "b.log", "!b.log/"], "a": ["*.log", "!b.log/"]})
def test_the_same_files_are_left_out_as_by_git(paths: list[str], rules: dict[str, list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        lay_out(root, paths, rules)
        subprocess.run(["git", "init", "-q", root], check=True)
        options = ("--others", "--exclude-per-directory=.gitignore", "-z")
        listed = subprocess.run(["git", "ls-files", *options], cwd=root, check=True, capture_output=True, text=True)
        assert walked(root) == sorted(filter(None, listed.stdout.split("\0")))


def test_rules_hold_without_a_repository_and_from_the_folders_above(tmp_path: Path) -> None:
    lay_out(tmp_path, ["src/a.py", "src/gen/b.py", "src/deep/gen/c.py"], {".": ["gen/"], "src/deep": ["!gen/"]})
    assert walked(tmp_path, "src") == ["src/a.py", "src/deep/.gitignore", "src/deep/gen/c.py"]


def test_excluded_files_of_the_clone_are_left_out(tmp_path: Path) -> None:
    lay_out(tmp_path, [".git/info/exclude", "a", "b"], {})
    (tmp_path / ".git/info/exclude").write_text("b\n")
    assert walked(tmp_path) == ["a"]


@pytest.mark.parametrize("start", [".", "src"])
def test_skills_that_read_folders_leave_them_out_and_say_so(start: str, tmp_path: Path) -> None:
    lay_out(tmp_path, [".git/HEAD", "src/a.md", "src/secret.md"], {".": ["secret.md"]})
    left_out = LeftOut()
    assert [name.rpartition("/")[2] for _, name in walk_files(tmp_path / start, left_out)] == ["a.md"]
    assert left_out.counts() == {"ignored by git": 1}
