"""A search with ripgrep finds what one without it finds, in files and with patterns of every kind."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fireswarm.capabilities.workspace import reading, ripgrep
from fireswarm.capabilities.workspace.reading import reading_tools
from fireswarm.capabilities.workspace.ripgrep import find_candidates, relax_pattern
from fireswarm.errors import InvalidInput
from tests.support.confinement import run_programs_of

pytestmark = pytest.mark.anyio
needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")

EXAMPLES = int(os.environ.get("FIRESWARM_CASES", "300"))
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="ab \t\r\n\x0b\x0c\x1c\x85\u2028é\ufffd.", max_size=60).map(lambda text: text.encode()),
    st.lists(
        st.sampled_from([b"foo", b"bar", b"\xff", b"\xe2\x82", b"\n", b"\r\n", b"\r", b" ", b"x" * 3_000, b"\0"])
    ).map(b"".join),
    st.sampled_from([b"\xff\xfef\0o\0o\0", b"\xff\xfe\x42\x4e", b"\xef\xbb\xbffoo\n", b"foo" + b"\0" * 9_000, b""]),
)
ATOMS = [
    *("foo", "ba?r", ".", "^", "$", r"\b", r"\B", r"\A", r"\z", r"\w+", r"\W", r"\s", r"\S", r"\d", r"\D", "[a-f]"),
    *("[^o]", r"[^\s]", "x*", "é", r"\.", r"\t", "(?i)", "|", "(?:o|a)+", "(a)", r"\x61", r"\p{L}", "[[:alpha:]]"),
    *("{2}", "[^a&&b]", r"\r", r"\n", "(?s)", "(?x) a b", "(?m)^", "(?P<n>f)", r"[\w.-]", "[]a]", "[^]]", r"\-", "-"),
]
PATTERNS = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map("".join)
NAMES = st.sampled_from(
    [b"a.txt", b".hidden", b"-rf", b"a b", b"n\nl", b"\xff\xfe", "é".encode(), b"sub/c.txt", b".h/d", b"node_modules/e"]
    + [b"venv", b".gitignore", b"sub/.ignore", b"q?*[", b".git/f", b"./g\\h", b"k;l", b"!m"]
)


def _lay_out(folder: Path, files: dict[bytes, bytes]) -> None:
    for name, content in files.items():
        path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        if not path.is_dir():
            path.write_bytes(content)
    (folder / "link").symlink_to("a.txt")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")


@contextmanager
def without_ripgrep() -> Generator[None]:
    with mock.patch.object(ripgrep, "PROGRAM", "no-such-program"):
        yield


async def search(folder: Path, pattern: str, **more: object) -> str:
    try:
        return str(await reading_tools(folder)["search_files"].run({"pattern": pattern, **more}))
    except InvalidInput as error:
        return f"error: {error}"


@needs_ripgrep
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=st.dictionaries(NAMES, CONTENTS, min_size=1, max_size=5), pattern=PATTERNS)
@example(files={b"a.txt": b"x\xe2\x82y\n"}, pattern="x.y")
@example(files={b"a.txt": b"x\ry\n"}, pattern="^y$")
@example(files={b".gitignore": b"*\n", b"a.txt": b"foo\n"}, pattern="foo")
@example(files={b"a.txt": b"\xff\xfef\0o\0o\0\n\0"}, pattern="foo")
async def test_search_with_ripgrep_finds_what_python_finds(files: dict[bytes, bytes], pattern: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        _lay_out(folder, files)
        found = await search(folder, pattern, context=1)
        with without_ripgrep():
            assert found == await search(folder, pattern, context=1)


@needs_ripgrep
async def test_usual_patterns_are_left_to_ripgrep(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "b.py").write_text("x = 1\n")
    for pattern in ("def add", r"^def \w+\(", "(?i)RETURN", "a|q", r"return\s+.*b$", r"\badd\b", "[^x]dd"):
        assert find_candidates(pattern, tmp_path, (), 1_000, 20) == {b"a.py"}, pattern


@needs_ripgrep
async def test_only_the_files_that_may_match_are_read(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("nothing\n")
    (tmp_path / "7.txt").write_text("needle\n")
    with mock.patch.object(reading, "_text_in", side_effect=reading._text_in) as read:  # pyright: ignore[reportPrivateUsage]
        assert await search(tmp_path, "needle") == "7.txt:1:needle"
    assert read.call_count == 1


@pytest.mark.parametrize(
    "pattern", [r"\x{FFFD}", "\ufffd", r"\p{So}", "(?x)a", "(?s).", "[[:^alpha:]]", r"\u2028", "(?", "[a", "\\"]
)
def test_pattern_that_may_differ_is_left_to_python(pattern: str) -> None:
    assert relax_pattern(pattern) is None


async def test_program_of_the_workspace_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rg").write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    (tmp_path / "rg").chmod(0o755)
    (tmp_path / "a.txt").write_text("foo\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert await search(tmp_path, "foo") == "a.txt:1:foo"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".:/usr/bin:/bin")
    assert await search(tmp_path, "foo") == "a.txt:1:foo"
    assert not (tmp_path / "pwned").exists()


@needs_ripgrep
async def test_settings_of_the_folder_and_the_environment_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(f"--pre={tmp_path}/pre\n")
    (tmp_path / "pre").write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    (tmp_path / "pre").chmod(0o755)
    (tmp_path / ".rgignore").write_text("*\n")
    (tmp_path / "a.txt").write_text("foo\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    assert await search(tmp_path, "^foo") == "a.txt:1:foo"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("hangs", ["exec sleep 60", "exec yes", "exit 2", "kill -9 $$"])
async def test_ripgrep_that_hangs_or_fails_is_done_without(
    hangs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").write_text(f"#!/bin/sh\n{hangs}\n")
    (tmp_path / "bin" / "rg").chmod(0o755)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("foo\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    run_programs_of(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr(ripgrep, "MAX_LISTED_BYTES", 1_000_000)
    assert find_candidates("foo", tmp_path / "work", (), 1_000, 0.5) is None
    if "sleep" not in hangs:
        assert await search(tmp_path / "work", "foo") == "a.txt:1:foo"


@pytest.mark.parametrize("program", [pytest.param("rg", marks=needs_ripgrep), "no-such-program"])
async def test_search_is_bounded_in_time_and_output(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "PROGRAM", program)
    (tmp_path / "a.txt").write_text(("a" * 5_000 + "!\n") * 300)
    with mock.patch.object(reading, "MAX_LINE_CHARS", 50):
        found = await search(tmp_path, r"(a+)+$|(a|a)*!")
    assert found.count("\n") == reading.MAX_MATCHES and found.endswith(
        "[100 more matches: narrow pattern, path or glob]"
    )
    assert not re.search("a{51}", found)
    monkeypatch.setattr(reading, "MAX_SEARCH_SECONDS", 0.0)
    assert "[stopped after" in await search(tmp_path, "a")
