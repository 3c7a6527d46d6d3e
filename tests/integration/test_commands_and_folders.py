"""Commands and folders: what only reads creates nothing, and what we create is ignored by git."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import typer.main

from fireswarm.cli.agent.main import app as agent_app
from fireswarm.cli.swarm.main import app as swarm_app
from fireswarm.settings.run_folders import make_state_folder
from tests.support.commands import agent
from tests.support.fleet import environment, lay_out
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm_command import swarm
from tests.support.terminal import CTRL_C, Terminal

CREATING = {
    "demo", "init", "up", "role", "submit", "api", "console", "mcp", "a2a", "pipeline demo", "pipeline new",
    "pipeline run", "store serve", "store restore", "store import", "store backup", "store export", "budget", "pause",
    "drain", "schedule set",
}  # fmt: skip
"""Commands whose purpose is to write."""

WITHOUT_ROOT = {"pipeline trace", "pipeline report", "skills list", "skills inspect", "skills check", "skills bench"}

ARGUMENTS = {
    "pipeline report": ["x"],
    "pause": ["scout"], "resume": ["scout"], "drain": ["scout"],
    "budget": ["day", "--usd", "5"],
    "memory history": ["x"],
    "memory recall": ["x"],
    "memory wrong": ["x"], "memory correct": ["x", "y"], "memory forget": ["x"],
    "plan": ["0a"],
    "schedule set": ["x", "0 6 * * *", "a task"],
    "schedule pause": ["x"], "schedule resume": ["x"], "schedule remove": ["x"], "schedule run": ["x"],
    "say": ["x", "words"],
    "fork": ["x", "--before", "1"],
    "show": ["0a"], "cancel": ["0a"], "retry": ["0a"], "answer": ["0a", "x=1"], "approve": ["0a"], "deny": ["0a"],
    "artifacts": ["0a"], "open": ["0a"], "watch": ["0a"], "store reset": ["--yes"], "store backup": ["new"],
    "store export": ["new"], "store import": ["copy"], "store restore": ["copy"], "submit": ["a task"],
    "role": ["scout"], "pipeline new": ["x"], "pipeline show": ["x"], "pipeline run": ["x"],
    "pipeline resume": ["0a", "--from", "x"],
}  # fmt: skip


def names(command: object, above: str = "") -> Iterator[str]:
    subcommands = getattr(command, "commands", None)
    if not subcommands:
        yield above
        return
    for name, item in subcommands.items():
        yield from names(item, f"{above} {name}".strip())


ALL = sorted(names(typer.main.get_command(swarm_app)))


def content(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "cache" not in path.parts)


def test_each_command_gets_the_arguments_that_it_needs() -> None:
    """Without one, the tests below see only the error of the arguments; `make test` runs a part of them."""
    missing = []
    for name in sorted({*ALL} - WITHOUT_ROOT):
        command = typer.main.get_command(swarm_app)
        for word in name.split():
            command = getattr(command, "commands")[word]  # noqa: B009 - a group of typer's, whose type it does not export
        try:
            command.make_context(name, list(ARGUMENTS.get(name, [])), resilient_parsing=False)
        except Exception as error:
            missing.append(f"{name}: {error}")
    assert missing == []


@pytest.mark.parametrize("name", [name for name in ALL if name not in {*WITHOUT_ROOT, "init"}])
def test_a_root_that_does_not_exist_is_an_error_and_is_not_created(name: str, tmp_path: Path) -> None:
    (tmp_path / "copy").touch()
    before = content(tmp_path)
    done = swarm(tmp_path, *name.split(), *ARGUMENTS.get(name, []), "--root", "no such folder")
    assert done.returncode == 1
    if name == "doctor":
        assert "FAIL settings   the folder no such folder does not exist" in done.stdout
    else:
        assert done.stderr.startswith("error (config_error): the folder no such folder does not exist: name an")
        assert "`swarm init 'no such folder'`" in done.stderr
        assert done.stderr.count("\n") == 1
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", [name for name in ALL if name not in {*WITHOUT_ROOT, *CREATING}])
def test_a_command_that_reads_an_empty_folder_creates_nothing(name: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    before = content(tmp_path)
    done = swarm(tmp_path, *name.split(), *ARGUMENTS.get(name, []), "--root", str(tmp_path))
    assert "Traceback" not in done.stderr
    assert content(tmp_path) == before


@pytest.mark.parametrize("line", ["budget day --usd 5", "pause scout", "drain scout"])
def test_what_is_ordered_before_the_first_start_is_kept(line: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    assert swarm(tmp_path, *line.split(), "--root", str(tmp_path)).returncode == 0
    shown = swarm(tmp_path, "store", "stats", "--root", str(tmp_path))
    assert re.search(rf"{'mcp_memory' if 'budget' in line else 'agent_mailbox'}\s+1\b", shown.stdout)


@pytest.mark.parametrize("line", ["stats", "reset --yes", "backup copy", "export copy"])
def test_a_data_file_that_does_not_exist_is_an_error_and_is_not_created(line: str, tmp_path: Path) -> None:
    done = swarm(tmp_path, "store", *line.split(), "--data", "typo/store.db")
    assert (done.returncode, done.stdout) == (1, "")
    assert "typo/store.db does not exist" in done.stderr
    assert content(tmp_path) == []


@pytest.mark.parametrize("line", ["skills list", "skills inspect x", "run task", "chat"])
def test_a_folder_of_skills_that_does_not_exist_is_an_error(line: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    provider = [] if line.startswith("skills") else ["--provider", "scripted", "--script", "x.json"]
    (tmp_path / "x.json").write_text("[]")
    before = content(tmp_path)
    done = agent(tmp_path, *line.split(), *provider, "--skills-dir", "typo")
    assert (done.code, done.stderr.count("\n")) == (1, 1)
    assert "--skills-dir typo is not a folder" in done.stderr
    assert content(tmp_path) == before


@pytest.mark.parametrize("line", ["run task", "chat", "resume latest", "replay latest"])
def test_a_settings_file_that_does_not_exist_is_an_error(line: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    done = agent(tmp_path, *line.split(), "--config", "typo/agent.yaml")
    assert (done.code, done.stderr.count("\n")) == (1, 1)
    assert "typo/agent.yaml does not exist" in done.stderr
    assert content(tmp_path) == ["home"]


def test_every_command_of_the_agent_is_known_here() -> None:
    assert set(names(typer.main.get_command(agent_app))) == {
        "runs",
        "run", "resume", "chat", "replay", "trust", "capabilities", "config init", "config validate", "skills list",
        "skills inspect", "skills check", "skills bench",
    }  # fmt: skip


def test_the_state_folder_is_ignored_by_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert swarm(tmp_path, "submit", "a task", "--root", str(tmp_path)).returncode == 0
    assert (tmp_path / ".fireswarm" / "store.db").exists()
    assert git_status(tmp_path) == ""


@pytest.mark.parametrize("name", ["logs", "work/task/1", "blobs/a", "artifacts/a", "files/b"])
def test_whatever_is_created_first_the_state_folder_is_ignored_by_git(name: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make_state_folder(tmp_path / "below" / ".fireswarm" / name)
    (tmp_path / "below" / ".fireswarm" / name / "file").touch()
    assert git_status(tmp_path) == ""


def test_a_gitignore_that_a_person_removed_is_not_written_again(tmp_path: Path) -> None:
    make_state_folder(tmp_path / ".fireswarm" / "logs")
    (tmp_path / ".fireswarm" / ".gitignore").unlink()
    make_state_folder(tmp_path / ".fireswarm" / "blobs")
    assert not (tmp_path / ".fireswarm" / ".gitignore").exists()


def test_a_demo_leaves_a_repository_clean_and_its_console_open_if_wanted(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    command = [sys.executable, "-m", "fireswarm.cli", "demo"]
    with Terminal(command, tmp_path, environment(), columns=240) as terminal, httpx2.Client() as browser:
        terminal.expect("console, a link for one browser: ", PATIENCE_SECONDS)
        link = terminal.expect("\n").strip()
        assert browser.get(link).status_code == 303
        terminal.expect("Keep the console open? [y/N]: ", PATIENCE_SECONDS)
        terminal.type("y\n")
        terminal.expect("Ctrl-C ends it", PATIENCE_SECONDS)
        page = browser.get(link.partition("enter?")[0])
        assert page.status_code == 200 and "Overview" in page.text
        terminal.type(CTRL_C)
        assert terminal.ended(PATIENCE_SECONDS) == 0, terminal.screen
    assert (tmp_path / ".fireswarm" / "logs").is_dir()
    assert git_status(tmp_path) == ""


def git_status(folder: Path) -> str:
    return subprocess.run(
        ["git", "-C", folder, "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout
