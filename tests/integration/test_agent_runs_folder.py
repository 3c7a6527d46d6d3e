"""The folder in which the agent keeps its runs: what git, the agent's own tools and the person see of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import GOOD, TASK, agent, at, kept, lay_out, script, serving
from tests.support.providers import Reply


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


def test_agent_does_not_find_its_own_journal(root: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    search = Reply(calls=(("search_files", {"pattern": "needle"}), ("list_files", {"glob": "runs/**"})))
    with serving([search, Reply("Nothing.")]) as served:
        keys = at(served, root, decision_mode="tools")
        done = agent(root, "run", "look for the needle", "--provider", "anthropic", **keys)
        assert done.code == 0, done.stderr
        asked, answered = (json.dumps(call.body) for call in served.calls)
    assert "?? agent.yaml" in asked and "runs/" not in asked
    assert "[no matches]" in answered and "[no files]" in answered
    status = subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True, text=True)
    assert "runs/" not in status.stdout


def test_folder_of_runs_that_exists_stays_as_it_is(root: Path) -> None:
    (root / "runs").mkdir()
    assert agent(root, "run", TASK, *script(root, GOOD)).code == 0
    assert not (root / "runs" / ".gitignore").exists()


def test_chat_keeps_its_history_out_of_the_project(root: Path) -> None:
    assert agent(root, "chat", *script(root, GOOD), typed=f"{TASK}\n\n").code == 0
    assert (root / "runs" / ".gitignore").read_text() == "*\n"
    assert [path.name for path in (root / "runs").glob("*/*")] == ["events.jsonl"]
    assert (kept(root) / "chats").is_dir()


def test_path_of_an_artifact_is_printed_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "my proj ü 100%").mkdir()
    root = lay_out(tmp_path / "my proj ü 100%")
    write = Reply(calls=(("write_artifact", {"name": "Bericht für Ada.md", "content": "# Hello"}),))
    with serving([write, Reply("Done.")]) as served:
        keys = at(served, root, decision_mode="tools")
        done = agent(root, "run", "write a report", "--provider", "anthropic", "--yes", **keys)
    [file] = kept(root).glob("*/outputs/*")
    assert f"file: {file}\n" in done.stderr
