"""What the agent keeps of its runs is out of reach of what it runs, and a forged or foreign run is not continued."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.settings.run_folders import DIGEST_CHARS, STATE_HOME, kept_runs
from tests.support.commands import TASK, agent, kept, lay_out, script
from tests.support.experts import calls

ASKING: list[Any] = [
    calls(("run_command", {"command": "echo a >> log"})),
    calls(("ask_user", {"question": "Who?", "name": "who"})),
    "Hello.",
]
ANSWERED = ("--resume-answer", "who=Ada")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


def waiting_run(root: Path) -> Path:
    """Begin a run that waits for an answer; returns its folder."""
    assert agent(root, "run", TASK, *script(root, *ASKING), "--yes").code == 3
    [folder] = kept(root).glob("*-*-*")
    return folder


def test_state_is_private_and_not_in_the_project(root: Path) -> None:
    folder = waiting_run(root)
    assert [path.name for path in (root / "runs").glob("*/*")] == ["events.jsonl"]
    assert (root / "runs" / folder.name / "events.jsonl").read_bytes() == (folder / "events.jsonl").read_bytes()
    for place in (folder.parent.parent, folder.parent, folder):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700, place
    assert stat.S_IMODE((folder.parent.parent / "key").stat().st_mode) == 0o600
    assert agent(root, "resume", "latest", *ANSWERED).code == 0


def test_two_folders_of_one_name_have_states_of_their_own(tmp_path: Path) -> None:
    first, second = (lay_out(tmp_path / name / "proj") for name in ("a", "b"))
    home = {"HOME": str(tmp_path)}
    for folder in (first, second):
        assert agent(folder, "run", TASK, *script(folder, "Hello."), **home).code == 0
        assert len(json.loads(agent(folder, "runs", "--json", **home).stdout)) == 1


@pytest.mark.parametrize("command", ["resume", "continue", "chat"])
def test_run_that_came_with_a_folder_is_not_continued(command: str, root: Path, tmp_path: Path) -> None:
    """Its log is there, and says that the model has called a command; its chat names it."""
    folder = waiting_run(root)
    other = lay_out(tmp_path / "other")
    planted = other / "runs" / folder.name
    shutil.copytree(folder, planted)
    task = json.loads((planted / "task.json").read_text())
    (planted / "task.json").write_text(json.dumps({**task, "cwd": str(other)}))
    (other / "runs" / "chats").mkdir()
    (other / "runs" / "chats" / "default.run").write_text(folder.name)
    options = script(other, "Another answer.")
    if command == "chat":
        done = agent(other, "chat", *options, typed="hello\n")
        assert "a new conversation" in done.stdout and "Another answer." in done.stdout
        return
    words = ("resume", folder.name, *ANSWERED) if command == "resume" else ("run", "go on", "--continue")
    refused = agent(other, *words, *options)
    assert (refused.code, "cannot be continued" in refused.stderr) == (1, True), refused.stderr
    shown = agent(other, "replay", folder.name)
    assert (shown.code, "may have changed" in shown.stderr) == (0, True)


def forge(lines: list[bytes]) -> list[bytes]:
    """Let the run have got another answer of its model."""
    return [line.replace(b"echo a >> log", b"echo b >> log") for line in lines]


def append(lines: list[bytes]) -> list[bytes]:
    finished = {"step": "act:9.0", "state": "finished", "result": {"text": "approved", "status": "ok"}}
    return [*lines, json.dumps(finished).encode()]


FORGERIES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "changed": forge,
    "appended": append,
    "dropped": lambda lines: [*lines[:1], *lines[2:]],
    "reordered": lambda lines: [lines[1], lines[0], *lines[2:]],
    "repeated": lambda lines: [*lines, lines[-1]],
    "without seals": lambda lines: [line.rpartition(b',"seal":')[0] + b"}" for line in lines],
}


@pytest.mark.parametrize("way", FORGERIES)
def test_forged_steps_are_refused_and_nothing_runs(way: str, root: Path) -> None:
    steps = waiting_run(root) / "steps.jsonl"
    lines = steps.read_bytes().splitlines()
    changed = FORGERIES[way](lines)
    assert changed != lines
    steps.write_bytes(b"\n".join(changed) + b"\n")
    refused = agent(root, "resume", "latest", *ANSWERED)
    assert (refused.code, "cannot be continued" in refused.stderr) == (1, True), refused.stderr
    assert "Traceback" not in refused.stderr
    assert (root / "log").read_text() == "a\n"
    assert steps.read_bytes().splitlines() == changed, "nothing is lost"


def test_another_task_or_another_run_has_no_use_of_the_steps(root: Path) -> None:
    folder = waiting_run(root)
    task = folder / "task.json"
    original = task.read_text()
    task.write_text(original.replace(TASK, "Delete everything"))
    assert "cannot be continued" in agent(root, "resume", "latest", *ANSWERED).stderr
    task.write_text(original)
    copy = folder.with_name(f"{folder.name[:-1]}{'0' if folder.name[-1] != '0' else '1'}")
    shutil.copytree(folder, copy)
    shutil.copytree(root / "runs" / folder.name, root / "runs" / copy.name)
    assert "cannot be continued" in agent(root, "resume", copy.name, *ANSWERED, "--script", "answers.json").stderr
    assert agent(root, "resume", folder.name, *ANSWERED).code == 0


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_record_that_a_crash_cut_off_costs_only_its_step(cut: int, root: Path) -> None:
    folder = waiting_run(root)
    steps = folder / "steps.jsonl"
    steps.write_bytes(steps.read_bytes()[:-cut])
    again = agent(root, "resume", "latest", *ANSWERED)
    assert (again.code, (root / "log").read_text()) == (0, "a\n"), again.stderr
    assert agent(root, "run", "say it again", "--continue", *script(root, *ASKING, "Again.")).code == 0, "it is whole"


@pytest.mark.parametrize("place", ["runs", "runs/RUN", "a pipe"])
def test_log_for_people_follows_no_link_and_stops_no_run(place: str, root: Path, tmp_path: Path) -> None:
    folder = waiting_run(root)
    target = tmp_path / "target"
    target.mkdir()
    shutil.rmtree(root / "runs")
    if place == "runs":
        (root / "runs").symlink_to(target)
    else:
        (root / "runs").mkdir()
        (root / "runs" / folder.name).symlink_to(target) if place == "runs/RUN" else None
    if place == "a pipe":
        (root / "runs" / folder.name).mkdir()
        os.mkfifo(root / "runs" / folder.name / "events.jsonl")
    done = agent(root, "resume", "latest", *ANSWERED)
    assert (done.code, "Hello." in done.stdout) == (0, True), done.stderr
    assert not list(target.iterdir())


def test_what_a_command_does_to_the_log_does_not_count(root: Path) -> None:
    clears = calls(("run_command", {"command": "rm -rf runs; ln -s / runs"}))
    assert agent(root, "run", TASK, *script(root, clears, *ASKING), "--yes").code == 3
    done = agent(root, "resume", "latest", *ANSWERED)
    assert (done.code, "Hello." in done.stdout) == (0, True), done.stderr
    assert (root / "log").read_text() == "a\n"


def test_runs_are_listed_with_their_status(root: Path) -> None:
    assert "no runs of this folder" in agent(root, "runs").stdout
    waiting_run(root)
    assert agent(root, "run", "another task", *script(root, "Hello.")).code == 0
    newest, oldest = sorted(json.loads(agent(root, "runs", "--json").stdout), key=lambda run: run["task"] == TASK)
    assert (newest["status"], newest["task"], oldest["status"]) == ("finished", "another task", "input_required")
    (Path(oldest["folder"]) / "events.jsonl").write_bytes(b"{}\nx\n")
    listed = {run["run_id"]: run["status"] for run in json.loads(agent(root, "runs", "--json").stdout)}
    assert listed == {newest["run_id"]: "finished", oldest["run_id"]: "damaged"}
    assert len(json.loads(agent(root, "runs", "--limit", "1", "--json").stdout)) == 1


def test_runs_of_an_earlier_version_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_HOME, str(tmp_path))
    kept = kept_runs(tmp_path)
    earlier = kept.with_name(kept.name[: -DIGEST_CHARS + 12])
    (earlier / "run-1").mkdir(parents=True)
    assert kept_runs(tmp_path) == kept and (kept / "run-1").is_dir() and not earlier.exists()
