"""Files that the tools for reading find below a folder, and files that they leave out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace import ripgrep
from fireswarm.capabilities.workspace.reading import reading_tools

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
    lay_out(tmp_path, f"runs/{RUN}/steps.jsonl", "runs/chats/history.jsonl", "runs/spend.jsonl")
    (tmp_path / "runs" / ".gitignore").write_text("*\n")
    for folder in (".", "runs"):
        assert await use(tmp_path, "list_files", path=folder) == "[no files]"
        assert await use(tmp_path, "search_files", path=folder, pattern="ada") == "[no matches]"
        assert await use(tmp_path, "search_files", path=folder, pattern=r"\*") == "[no matches]"
    inside = f"runs/{RUN}"
    assert await use(tmp_path, "list_files", path=inside) == f"{inside}/steps.jsonl (4 bytes)"
    assert await use(tmp_path, "search_files", path=inside, pattern="ada") == f"{inside}/steps.jsonl:1:ada"


@pytest.mark.usefixtures("program")
async def test_other_files_in_a_folder_of_runs_are_listed_and_searched(tmp_path: Path) -> None:
    lay_out(
        tmp_path, "runs/chats/a.md", "runs/exp-1/log.txt", "runs/spend.jsonl", f"x/{RUN}/events.jsonl", "x/notes.md"
    )
    lay_out(tmp_path, f"y/{RUN}", "x/.gitignore")
    names = ["runs/spend.jsonl", "runs/chats/a.md", "runs/exp-1/log.txt", "x/.gitignore", "x/notes.md", f"y/{RUN}"]
    assert await use(tmp_path, "list_files") == "\n".join(f"{name} (4 bytes)" for name in names)
    assert await use(tmp_path, "search_files", pattern="ada") == "\n".join(f"{name}:1:ada" for name in names)
