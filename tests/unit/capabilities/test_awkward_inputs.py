"""Every tool for files answers every input within a second, and its preview refuses what the tool refuses."""

from __future__ import annotations

import os
import socket
import string
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities import CapabilityContext
from fireswarm.capabilities.session_files.capability import SESSION_FILES, SessionFilesConfig
from fireswarm.capabilities.workspace.artifacts import ArtifactWriter, artifact_tools
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import FireswarmError

pytestmark = pytest.mark.anyio

MAX_SECONDS = 10.0
"""Processor time of this process for one call, which takes less than one second: what others do does not count."""

MAX_ERROR_CHARS = 2_000
HUGE = "one two " * 300_000
PATHS: tuple[Any, ...] = (
    "..",
    "/",
    "pipe",
    "socket",
    "folder",
    "link",
    "device",
    "lines.txt",
    "./" * 500_000,
    "*" * 50_000,
)
ODD: tuple[Any, ...] = (
    *PATHS, "", " ", "\0", HUGE, "\n" * 400_000, "a/" * 500_000, "../" * 500_000, "**/" * 10_000, "(" * 50_000,
    "\ud800", string.printable * 20_000, None, 0, -1, 10**400, True, 0.5, float("nan"), [], ["a"], {}, {"a": "b"}, b"x",
)  # fmt: skip
WORKSPACE: dict[str, dict[str, Any]] = {
    "list_files": {"path": ".", "glob": "*.md"},
    "read_file": {"path": "a.md", "offset": 1, "limit": 1},
    "search_files": {"pattern": "one", "path": ".", "glob": "*.md", "context": 0},
    "write_file": {"path": "new.md", "content": "x"},
    "edit_file": {"path": "a.md", "old_text": "one", "new_text": "one", "replace_all": True},
    "write_artifact": {"name": "x.md", "content": "x", "path": None, "type": "file"},
}
SESSION: dict[str, dict[str, Any]] = {
    "read_file": {"path": "/a"},
    "write_file": {"path": "/a", "content": "x", "encoding": "text", "if_version": None},
    "list_directory": {"path": "/"},
    "grep_files": {"pattern": "one", "path_pattern": "*"},
    "delete_file": {"path": "/a", "recursive": False},
    "stat_file": {"path": "/a"},
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "folder").mkdir(parents=True)
    (folder / "a.md").write_text("one\ntwo\n")
    (folder / "lines.txt").write_text("\n".join(f"{number:060b}" for number in range(5_000)))
    (folder / "link").symlink_to("pipe")
    (folder / "device").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    return folder


def inputs_for(usual: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {}
    yield {**usual, "more": 1}
    for name in usual:
        yield {key: value for key, value in usual.items() if key != name}
        yield from ({**usual, name: odd} for odd in ODD)


async def attack(tool: Tool, usual: Mapping[str, Any]) -> None:
    for given in inputs_for(usual):
        refused: list[str] = []
        shown = {key: str(value)[:50] for key, value in given.items()}
        for call in (tool.preview, tool.run):
            if call is None:
                continue
            started = time.process_time()
            try:
                await call(given)
                refused.append("")
            except FireswarmError as error:
                refused.append(str(error))
            taken = time.process_time() - started
            if len(refused[-1]) > MAX_ERROR_CHARS or taken > MAX_SECONDS:
                pytest.fail(f"{tool.name} {shown}: {taken:.1f} s, {refused[-1][:300]!r}")
        if len(set(refused)) > 1:
            pytest.fail(f"{tool.name} {shown}: {[each[:300] for each in refused]}")


@pytest.mark.parametrize("name", WORKSPACE)
async def test_workspace_tool_answers_awkward_inputs_at_once(name: str, root: Path) -> None:
    (outputs := root.parent / "outputs").mkdir()
    tools = workspace_tools(root, outputs) | artifact_tools(ArtifactWriter(root, outputs, str))
    await attack(tools[name], WORKSPACE[name])


@pytest.mark.parametrize("name", SESSION)
async def test_session_tool_answers_awkward_inputs_at_once(name: str, root: Path) -> None:
    context = CapabilityContext("s", root.parent / "session", VirtualClock())
    [tool] = [each for each in SESSION_FILES.tools(SessionFilesConfig(), context) if each.name == name]
    await attack(tool, SESSION[name])


async def test_tools_without_an_attack_are_named(root: Path) -> None:
    outputs = root.parent / "outputs"
    tools = workspace_tools(root, outputs) | artifact_tools(ArtifactWriter(root, outputs, str))
    assert set(tools) == set(WORKSPACE)
