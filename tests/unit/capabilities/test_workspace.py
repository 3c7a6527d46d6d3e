"""Reading tools: they list, read and search below one folder, and cannot leave it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace import (
    MAX_ENTRIES,
    MAX_LINES,
    MAX_MATCHES,
    MAX_SEARCHED_BYTES,
    describe_tools,
    reading_tools,
)
from fireswarm.errors import InvalidInput

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
    return await reading_tools(root)[name].run(given)


async def test_files_are_listed_with_their_sizes(root: Path) -> None:
    found = await use(root, "list_files")
    assert [file["path"] for file in found["files"]] == ["a.md", "bin.dat", "link.txt", "src/b.py"]
    assert found["files"][0]["bytes"] == 12
    assert [file["path"] for file in (await use(root, "list_files", pattern="*.py"))["files"]] == ["src/b.py"]
    assert (await use(root, "list_files", path="src", pattern="src/*"))["total"] == 1
    for number in range(MAX_ENTRIES + 5):
        (root / f"f{number}").touch()
    many = await use(root, "list_files")
    assert (len(many["files"]), many["total"]) == (MAX_ENTRIES, MAX_ENTRIES + 9)


async def test_read_file_returns_the_requested_lines(root: Path) -> None:
    assert await use(root, "read_file", path="a.md") == {"lines": ["one", "two Ada"], "from": 1, "total_lines": 2}
    assert (await use(root, "read_file", path="a.md", start=2, lines=1))["lines"] == ["two Ada"]
    assert (await use(root, "read_file", path="a.md", start="9"))["lines"] == []
    assert (await use(root, "read_file", path=(root / "a.md").as_uri()))["total_lines"] == 2
    (root / "long").write_text("x\n" * (MAX_SEARCHED_BYTES // 2 + 10))
    long = await use(root, "read_file", path="long", lines=10**9)
    assert len(long["lines"]) == MAX_LINES
    assert "only the first" in long["cut"]


async def test_text_search_ignores_case(root: Path) -> None:
    found = await use(root, "search_text", text="ADA")
    assert [(each["path"], each["line"]) for each in found["matches"]] == [("a.md", 2), ("src/b.py", 1)]
    (root / "many").write_text("ada\n" * 500)
    many = await use(root, "search_text", text="ada", pattern="many")
    assert (len(many["matches"]), many["total"]) == (MAX_MATCHES, 500)


async def test_pipe_does_not_block_a_search(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert (await use(root, "search_text", text="ada"))["total"] == 2
    with pytest.raises(InvalidInput):
        await use(root, "read_file", path="pipe")


@pytest.mark.parametrize(
    "path", ["..", "../outside.txt", "/etc/passwd", "link.txt", "src/../../outside.txt", "file:///etc/passwd"]
)
@pytest.mark.parametrize("tool", ["list_files", "read_file", "search_text"])
async def test_path_outside_the_workspace_is_rejected(tool: str, path: str, root: Path) -> None:
    with pytest.raises(InvalidInput, match="is outside the workspace"):
        await use(root, tool, path=path, text="ada")


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("read_file", {"path": "none"}, "does not exist"),
        ("read_file", {"path": "src"}, "is a folder: use list_files"),
        ("read_file", {"path": "bin.dat"}, "is not text"),
        ("search_text", {}, "needs a text"),
    ],
)
async def test_invalid_input_is_explained(tool: str, given: dict[str, Any], told: str, root: Path) -> None:
    with pytest.raises(InvalidInput, match=told):
        await use(root, tool, **given)


def test_tools_are_described_for_the_model_in_a_fixed_order(root: Path) -> None:
    tools = reading_tools(root)
    text = describe_tools(tools)
    assert text.index("`list_files`") < text.index("`read_file`") < text.index("`search_text`")
    assert "start" in text
    assert "lines" in text
    assert describe_tools({}) == ""
    assert [tool.spec_name for tool in tools.values()] == ["Glob", "Read", "Grep"]
    assert not any(tool.writes for tool in tools.values())
