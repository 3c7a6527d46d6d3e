"""Files that the tools for reading find below a folder, and files that they leave out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace import ripgrep
from fireswarm.capabilities.workspace.reading import reading_tools
from fireswarm.errors import InvalidInput
from fireswarm.settings.run_folders import add_swarm_folders

pytestmark = pytest.mark.anyio

RUN = "20261122-081500-0a1b2c3d"


async def use(root: Path, name: str, **given: Any) -> str:
    return str(await reading_tools(root)[name].run(given))


def lay_out(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("ada\n")


@pytest.fixture(params=["rg", "no-such-program"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search with ripgrep, and without it."""
    if request.param == "rg" and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    monkeypatch.setattr(ripgrep, "PROGRAM", request.param)


@pytest.mark.usefixtures("program")
async def test_runs_of_the_agent_are_left_out(tmp_path: Path) -> None:
    lay_out(tmp_path, f"runs/{RUN}/events.jsonl")
    (tmp_path / "runs" / ".gitignore").write_text("*\n")
    for folder in (".", "runs"):
        assert await use(tmp_path, "list_files", path=folder) == "[no files]"
        assert await use(tmp_path, "search_files", path=folder, pattern="ada") == "[no matches]"
        assert await use(tmp_path, "search_files", path=folder, pattern=r"\*") == "[no matches]"
    inside = f"runs/{RUN}"
    assert await use(tmp_path, "list_files", path=inside) == f"{inside}/events.jsonl (4 bytes)"
    assert await use(tmp_path, "search_files", path=inside, pattern="ada") == f"{inside}/events.jsonl:1:ada"


@pytest.mark.usefixtures("program")
async def test_state_of_the_agent_in_the_workspace_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person works in the home folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lay_out(tmp_path, "state/fireswarm/x/steps.jsonl", "state/other/a.txt", "elsewhere/data/store.db")
    add_swarm_folders(tmp_path / "elsewhere" / "data")
    assert await use(tmp_path, "list_files") == "state/other/a.txt (4 bytes)"
    assert await use(tmp_path, "search_files", pattern="ada") == "state/other/a.txt:1:ada"
    files = ("state/fireswarm/x/steps.jsonl", "elsewhere/data/store.db")
    for tool, path in (("list_files", "state/fireswarm"), *(("read_file", file) for file in files)):
        with pytest.raises(InvalidInput, match="belongs to fireswarm"):
            await use(tmp_path, tool, path=path)


@pytest.mark.usefixtures("program")
async def test_other_files_in_a_folder_of_runs_are_listed_and_searched(tmp_path: Path) -> None:
    lay_out(
        tmp_path, "runs/chats/a.md", "runs/exp-1/log.txt", "runs/spend.jsonl", f"x/{RUN}/events.jsonl", "x/notes.md"
    )
    lay_out(tmp_path, f"y/{RUN}", "x/.gitignore")
    names = ["runs/spend.jsonl", "runs/chats/a.md", "runs/exp-1/log.txt", "x/.gitignore", "x/notes.md", f"y/{RUN}"]
    assert await use(tmp_path, "list_files") == "\n".join(f"{name} (4 bytes)" for name in names)
    assert await use(tmp_path, "search_files", pattern="ada") == "\n".join(f"{name}:1:ada" for name in names)


@pytest.mark.usefixtures("program")
async def test_braces_of_a_glob_are_alternatives(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.ts", "src/b.tsx", "src/c.js", "{d,e")
    assert await use(tmp_path, "list_files", glob="**/*.{ts,tsx}") == "a.ts (4 bytes)\nsrc/b.tsx (4 bytes)"
    assert await use(tmp_path, "search_files", pattern="ada", glob="{src,lib}/*.{js,ts}") == "src/c.js:1:ada"
    assert await use(tmp_path, "list_files", glob="{d,*") == "{d,e (4 bytes)"


@pytest.mark.parametrize("tool", ["list_files", "search_files"])
async def test_too_many_alternatives_are_refused_also_in_an_empty_folder(tool: str, tmp_path: Path) -> None:
    given = {"pattern": "ada"} if tool == "search_files" else {}
    with pytest.raises(InvalidInput, match="the braces have 65 alternatives; at most 64 are allowed"):
        await use(tmp_path, tool, glob="{" + "," * 64 + "}", **given)


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("name", ["a\nb.txt", "c\x1b[1m.txt", "d\r/e.txt", "\udcff.bin", "\u202egpj.exe"])
async def test_file_whose_name_cannot_be_shown_is_counted(name: str, tmp_path: Path) -> None:
    note = "is left out: its name has characters that cannot be shown]"
    lay_out(tmp_path, name)
    assert await use(tmp_path, "list_files") == f"[1 file {note}"
    assert await use(tmp_path, "search_files", pattern="ada") == f"[1 file with matches {note}"
    assert await use(tmp_path, "search_files", pattern="eve") == "[no matches]"
    assert await use(tmp_path, "list_files", glob="*.md") == "[no files]"
    lay_out(tmp_path, "plain.txt", "na\u00efve \u202f.txt", "\n")
    note = "are left out: their names have characters that cannot be shown]"
    shown = ["na\u00efve \u202f.txt", "plain.txt"]
    listed = [f"{each} (4 bytes)" for each in shown]
    assert await use(tmp_path, "list_files") == "\n".join([*listed, f"[2 files {note}"])
    matches = [f"{each}:1:ada" for each in shown]
    assert await use(tmp_path, "search_files", pattern="ada") == "\n".join([*matches, f"[2 files with matches {note}"])


@pytest.mark.usefixtures("program")
async def test_files_that_gitignore_names_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.txt", "secret.env", "cache/x.txt", "cache/y.txt", "src/keep.env")
    (tmp_path / ".gitignore").write_text("*.env\n/cache/\n")
    (tmp_path / "src/.gitignore").write_text("!keep.env\n")
    note = "[left out, since .gitignore names it: cache/, secret.env; ignored: true includes it]"
    found = await use(tmp_path, "search_files", pattern="ada")
    assert found.splitlines() == ["a.txt:1:ada", "src/keep.env:1:ada", note]
    assert (await use(tmp_path, "list_files", glob="*.txt")).splitlines() == ["a.txt (4 bytes)", note]
    found = await use(tmp_path, "search_files", pattern="ada", ignored=True)
    assert [line.partition(":")[0] for line in found.splitlines()] == [
        *("a.txt", "secret.env", "cache/x.txt", "cache/y.txt", "src/keep.env")
    ]
    assert await use(tmp_path, "search_files", pattern="ada", path="secret.env") == "secret.env:1:ada"
    below = await use(tmp_path, "list_files", path="cache")
    assert below.splitlines()[0] == "[no files]" and "cache/x.txt, cache/y.txt; ignored: true" in below


async def test_caches_that_ignore_themselves_are_left_out_and_many_names_are_counted(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"cache{number}/x.txt" for number in range(8)))
    for number in range(8):
        (tmp_path / f"cache{number}/.gitignore").write_text("*\n")
    assert "cache3/, cache4/ and 3 more; ignored" in await use(tmp_path, "list_files", glob="*.txt")
