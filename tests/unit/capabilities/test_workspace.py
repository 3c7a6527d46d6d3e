"""Reading tools: they list, read and search below one folder, and cannot leave it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fireswarm.capabilities.workspace import reading
from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.capabilities.workspace.reading import MAX_ENTRIES, MAX_MATCHES, MAX_SEARCHED_BYTES
from fireswarm.capabilities.workspace.shown_text import find_passage
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.errors import InvalidInput
from fireswarm.redaction import sanitize

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "a.md": "one\ntwo Ada\n",
        "src/b.py": "ada = 1\n",
        ".git/config": "ada",
        "bin.dat": "ada\0",
    }.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text)
    (tmp_path / "outside.txt").write_text("ada, secretly")
    (tmp_path / "work" / "link.txt").symlink_to(tmp_path / "outside.txt")
    return tmp_path / "work"


async def use(root: Path, name: str, **given: Any) -> Any:
    return await workspace_tools(root)[name].run(given)


async def test_files_are_listed_with_their_sizes(root: Path) -> None:
    found = (await use(root, "list_files")).splitlines()
    assert found == ["a.md (12 bytes)", "bin.dat (4 bytes)", found[2], "src/b.py (8 bytes)"]
    assert await use(root, "list_files", glob="*.py") == "src/b.py (8 bytes)"
    assert await use(root, "list_files", glob="src/**") == "src/b.py (8 bytes)"
    assert await use(root, "list_files", path="src", glob="*.md") == "[no files]"
    for number in range(MAX_ENTRIES + 5):
        (root / f"f{number}").touch()
    many = (await use(root, "list_files")).splitlines()
    assert (len(many), many[-1]) == (MAX_ENTRIES + 1, "[9 more files: narrow path or glob]")


async def test_read_file_returns_the_requested_lines_with_their_numbers(root: Path) -> None:
    assert await use(root, "read_file", path="a.md") == "     1\tone\n     2\ttwo Ada"
    page = await use(root, "read_file", path="a.md", limit=1)
    assert page == "     1\tone\n[lines 1 to 1 of 2 of a.md; read on with offset=2]"
    assert await use(root, "read_file", path="a.md", offset="2") == "     2\ttwo Ada"
    assert await use(root, "read_file", path=(root / "a.md").as_uri()) == await use(root, "read_file", path="a.md")
    (root / "empty").touch()
    assert await use(root, "read_file", path="empty") == "[the file is empty]"


async def test_very_long_line_does_not_fill_the_page(root: Path) -> None:
    (root / "long").write_text("x" * 100_000 + "\nnext\n")
    page = await use(root, "read_file", path="long")
    assert "more characters in this line: read on with offset=1, limit=1, column=2001]" in page
    assert page.endswith("\tnext")


async def test_all_of_a_very_long_line_can_be_read(root: Path) -> None:
    line = "".join(f"{number:07}" for number in range(6_000))
    (root / "long").write_text(f"first\n{line}\nnext\n")
    shown, column = "", 1
    while column:
        page = await use(root, "read_file", path="long", offset=2, limit=1, column=column)
        text = page.split("\n")[0].split("\t")[1]
        more = re.search(r"\[[\d,]+ more characters in this line: read on with .*column=(\d+)\]$", text)
        shown += text[: more.start()] if more else text
        column = int(more[1]) if more else 0
    assert shown == line


async def test_end_of_a_file_that_is_not_read_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 9)
    told = "[the lines of the first 9 bytes of 12: use run_command to look into the rest]"
    assert (await use(root, "read_file", path="a.md")).endswith(told)
    with pytest.raises(InvalidInput, match="use run_command"):
        await use(root, "read_file", path="a.md", offset=9)
    assert "run_command" not in await use(root, "read_file", path="src/b.py")


async def test_search_finds_lines_by_a_regular_expression(root: Path) -> None:
    assert await use(root, "search_files", pattern="(?i)ADA") == "a.md:2:two Ada\nsrc/b.py:1:ada = 1"
    assert await use(root, "search_files", pattern="^two", context=1) == "a.md-1-one\na.md:2:two Ada\n--"
    assert await use(root, "search_files", pattern="ada", glob="*.md") == "[no matches]"
    (root / "many").write_text("ada\n" * 500)
    many = (await use(root, "search_files", pattern="ada", path="many")).splitlines()
    assert (len(many), many[-1]) == (MAX_MATCHES + 1, "[300 more matches: narrow pattern, path or glob]")


async def test_file_too_large_for_a_text_and_a_pipe_are_not_searched(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "huge").write_text("ada" * MAX_SEARCHED_BYTES)
    assert len((await use(root, "search_files", pattern="ada")).splitlines()) == 1
    with pytest.raises(InvalidInput, match="is not a file"):
        await use(root, "read_file", path="pipe")


OUTSIDE = ["..", "../outside.txt", "/etc/passwd", "link.txt", "src/../../outside.txt", "file:///etc/passwd"]
GIVEN: dict[str, dict[str, Any]] = {
    "list_files": {},
    "read_file": {},
    "search_files": {"pattern": "ada"},
    "write_file": {"content": "x"},
    "edit_file": {"old_text": "ada", "new_text": "x"},
}


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("tool", GIVEN)
async def test_path_outside_the_workspace_is_refused(tool: str, path: str, root: Path) -> None:
    with pytest.raises(InvalidInput, match="is outside the workspace"):
        await use(root, tool, path=path, **GIVEN[tool])
    assert (root.parent / "outside.txt").read_text() == "ada, secretly"


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file", "search_files"])
async def test_folder_that_becomes_a_link_after_the_check_leads_nowhere(
    tool: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "b.py").write_text("ada, secretly")
    locate = Workspace.locate

    def swap_after(self: Workspace, named: str, **options: bool) -> Path:
        path = locate(self, named, **options)
        if not (root / "src").is_symlink():
            (root / "src").rename(root / "old")
            (root / "src").symlink_to(root.parent / "elsewhere")
        return path

    monkeypatch.setattr(Workspace, "locate", swap_after)
    if tool == "search_files":
        assert "secretly" not in await use(root, tool, path="src/b.py", **GIVEN[tool])
    else:
        with pytest.raises(InvalidInput):
            await use(root, tool, path="src/b.py", **GIVEN[tool])
    assert (root.parent / "elsewhere" / "b.py").read_text() == "ada, secretly"


async def test_files_of_the_swarm_are_not_a_part_of_the_workspace(root: Path) -> None:
    (root / ".fireswarm").mkdir()
    (root / ".fireswarm" / "store.db").write_text("ada")
    for tool, inputs in GIVEN.items():
        with pytest.raises(InvalidInput, match="belongs to fireswarm"):
            await use(root, tool, path=".fireswarm/store.db", **inputs)


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("read_file", {"path": "none"}, "does not exist"),
        ("read_file", {"path": "src"}, "is a folder: use list_files"),
        ("read_file", {"path": "bin.dat"}, "is not text"),
        ("read_file", {"path": "a.md", "offset": 9}, "is behind the last one"),
        ("read_file", {"path": "a.md", "offset": 0}, "offset"),
        ("read_file", {}, "path"),
        ("search_files", {}, "pattern"),
        ("search_files", {"pattern": "("}, "cannot be used"),
        ("write_file", {"path": "src", "content": "x"}, "is not a file"),
        ("write_file", {"path": "a.md/b", "content": "x"}, "is not a folder"),
        ("edit_file", {"path": "none", "old_text": "a", "new_text": "b"}, "does not exist"),
        ("edit_file", {"path": "bin2", "old_text": "a", "new_text": "b"}, "is not text in UTF-8"),
        ("edit_file", {"path": "a.md", "old_text": "", "new_text": "b"}, "old_text"),
    ],
)
async def test_invalid_input_is_explained(tool: str, given: dict[str, Any], told: str, root: Path) -> None:
    (root / "bin2").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=told):
        await use(root, tool, **given)


async def test_written_file_keeps_its_mode_and_a_new_one_gets_its_folders(root: Path) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    assert (await use(root, "write_file", path="run.sh", content="new\n")).startswith("wrote run.sh: 1 line, in")
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750
    await use(root, "write_file", path="x/y/z.txt", content="z")
    assert (root / "x" / "y" / "z.txt").read_text() == "z"
    assert sorted(os.listdir(root)) == [".git", "a.md", "bin.dat", "link.txt", "run.sh", "src", "x"]  # noqa: PTH208


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_new_files_belong_to_the_owner_of_the_workspace(root: Path) -> None:
    os.chown(root, 1234, 1234)
    await use(root, "write_file", path="new/file", content="x")
    assert {(root / part).stat().st_uid for part in ("new", "new/file")} == {1234}


@pytest.mark.parametrize("tool", GIVEN)
async def test_path_that_no_file_can_have_is_refused_also_by_the_preview(tool: str, root: Path) -> None:
    (root / "circle").symlink_to("circle")
    for path in ("x" * 300, "circle/a"):
        with pytest.raises(InvalidInput):
            await use(root, tool, path=path, **GIVEN[tool])
        if preview := workspace_tools(root)[tool].preview:
            with pytest.raises(InvalidInput):
                await preview({"path": path, **GIVEN[tool]})


async def test_file_with_windows_line_ends_keeps_them(root: Path) -> None:
    (root / "dos.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    await use(root, "edit_file", path="dos.txt", old_text="a\nb", new_text="1\n2\n3")
    assert (root / "dos.txt").read_bytes() == b"1\r\n2\r\n3\r\nc\r\n"
    assert (await use(root, "read_file", path="dos.txt")).endswith(r"[its lines end with '\r\n'; edit_file keeps them]")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("a\x1b[1mb\x1b[0mc\n", "abc", "xyz", "xyz\n"),
        ("\x1b[1mname\x1b[0m: 1\n", "name\x1b[0m: 1", "name: 2", "\x1b[1mname: 2\n"),  # it knows what is there
        ("\x1b[1mname\x1b[0m: 1\n", ": 1", ": 2", "\x1b[1mname\x1b[0m: 2\n"),
        ("\u05d0\u200f\u05d1 one\n", "\u05d0\u05d1 one", "two", "two\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "x\n", "x\r\n"),  # line ends of both kinds
        ("a\r\nb\nc\r\n", "b\nc", "b\nx", "b\nx".join(["a\r\n", "\r\n"])),
        ("a\r\nb\r\n", "\nb", "\nx", "a\r\nx\r\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n"),
        ("a\nb\n", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n"),
        ("a\rb\rc", "a\nb", "x\ny\nz", "x\ry\rz\rc"),
        ("a\fb\n", "ab", "c", "c\n"),
        ("x\n\x1b]0;\ny\n", "x\n\ny", "z", "z\n"),
    ],
)
async def test_passage_is_found_as_it_was_shown(root: Path, before: str, old: str, new: str, after: str) -> None:
    (root / "odd.txt").write_bytes(before.encode())
    await use(root, "edit_file", path="odd.txt", old_text=old, new_text=new)
    assert (root / "odd.txt").read_bytes() == after.encode()


async def test_hidden_characters_are_counted_when_a_file_is_read_and_when_an_edit_removes_them(root: Path) -> None:
    (root / "odd.txt").write_bytes(b"a\x1b[1mb\x0cc\n\x07d\n")
    read = await use(root, "read_file", path="odd.txt")
    assert read.endswith("[it has 3 control characters that cannot be shown; edit_file keeps them]")
    edited = await use(root, "edit_file", path="odd.txt", old_text="abc", new_text="e")
    assert edited.split("\n")[0] == "edited odd.txt; 2 control characters were in what it replaced"
    assert (root / "odd.txt").read_bytes() == b"e\n\x07d\n"
    await use(root, "edit_file", path="odd.txt", old_text="\x07", new_text="")
    assert "cannot be shown" not in await use(root, "read_file", path="odd.txt")


@given(st.text(st.sampled_from("ab\r\n\x1b[m\x07\u200f"), max_size=20), st.data())
def test_any_shown_passage_is_found_and_the_rest_stays(text: str, data: st.DataObject) -> None:
    shown = sanitize("\n".join(re.split("\r\n?|\n", text)))
    start = data.draw(st.integers(0, max(0, len(shown) - 1)))
    passage = shown[start : start + data.draw(st.integers(1, 5))]
    assume(passage and passage != shown)
    spans = find_passage(text, passage)
    assert spans and all(end > start for start, end in spans)
    for start, end in spans:
        assert sanitize("\n".join(re.split("\r\n?|\n", text[start:end]))) == passage


async def test_lines_are_counted_as_editors_count_them(root: Path) -> None:
    (root / "odd.txt").write_bytes("one\fstill one\u2028and\x85one\ntwo ada\rthree\r\n".encode())
    assert "     2\ttwo ada\n     3\tthree\n" in await use(root, "read_file", path="odd.txt")
    assert await use(root, "search_files", pattern="two", glob="odd.txt") == "odd.txt:2:two ada"


@pytest.mark.parametrize("name", ["a\x1b]0;x\x07", "\u202egpj.exe", "a\rb", "a\u200bb"])
async def test_new_file_gets_no_name_that_a_screen_would_not_show(root: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="no control characters"):
        await use(root, "write_file", path=name, content="x")
    (root / name).write_text("old")
    await use(root, "write_file", path=name, content="x")
    assert (root / name).read_text() == "x", "one that is there can be written"


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_files_of_git_are_not_written(tool: str, root: Path) -> None:
    with pytest.raises(InvalidInput, match="belongs to git"):
        await use(root, tool, path=".git/config", **GIVEN[tool])


async def test_preview_of_a_write_is_its_diff_and_changes_nothing(root: Path) -> None:
    tools = workspace_tools(root)
    preview = tools["edit_file"].preview
    assert preview is not None
    diff = await preview({"path": "a.md", "old_text": "one", "new_text": "eins"})
    assert "-one\n+eins" in diff
    assert (root / "a.md").read_text().startswith("one")
    with pytest.raises(InvalidInput, match="outside the workspace"):
        await preview({"path": "../x", "old_text": "one", "new_text": "eins"})


async def test_preview_of_filling_an_empty_file_is_its_diff(root: Path) -> None:
    (root / "empty.md").touch()
    preview = workspace_tools(root)["write_file"].preview
    assert preview is not None
    assert (await preview({"path": "empty.md", "content": "one\n"})).splitlines()[-1] == "+one"


async def test_preview_of_replacing_a_binary_file_is_its_size(root: Path) -> None:
    (root / "bin.dat").write_bytes(b"\xff\0")
    preview = workspace_tools(root)["write_file"].preview
    assert preview is not None
    assert await preview({"path": "bin.dat", "content": "one"}) == "bin.dat: 2 bytes -> 3 bytes"


def test_tools_are_in_a_fixed_order(root: Path) -> None:
    tools = workspace_tools(root)
    assert [tool.spec_name for tool in tools.values()] == ["Glob", "Read", "Grep", "Write", "Edit"]
    assert [name for name, tool in tools.items() if tool.writes] == ["write_file", "edit_file"]
