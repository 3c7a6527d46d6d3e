"""Protected names that code made in a workspace although its process was killed, or beside other processes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.paths import late_names
from fireswarm.processes.confinement.paths.late_names import NOTES_FOLDER, LateNames, set_aside_left
from fireswarm.processes.confinement.view import View
from fireswarm.settings.run_folders import STATE_HOME, state_home
from tests.support.code_at_work import code_at_work

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux")

COMMAND = """
import sys
from pathlib import Path
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import run_confined
folder, line, rung = sys.argv[1:]
view = View(Path(folder), writable=True)
run_confined(["/bin/bash", "-c", line], view, {"PATH": "/usr/bin:/bin"}, 600, confinement=rung)
"""
"""A process that runs a line as a command in a folder until it ends."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_HOME, str(tmp_path / "state"))
    return state_home()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def notes() -> list[Path]:
    return sorted((state_home() / NOTES_FOLDER).iterdir())


def told(folder: Path, *names: str) -> list[str]:
    shown = str(folder) if str(folder).isprintable() else json.dumps(str(folder))
    return [
        f"in {shown}, after a command that was killed: "
        f"{name} is now {name}.set-aside-1: only a person makes {name} here"
        for name in names
    ]


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock"])
def test_names_of_a_command_are_set_aside_after_its_process_was_killed(rung: str, workspace: Path) -> None:
    try:
        View(workspace, confinement=rung).check()
    except SandboxRefused as error:
        pytest.skip(str(error))
    (workspace / ".git").mkdir()
    (workspace / ".idea").mkdir()
    os.mkfifo(workspace / "ready")
    (workspace / "ready").chmod(0o666)
    line = (
        "trap '' TERM; mkdir -p .git/hooks .vscode; echo evil > .envrc; echo evil > .vscode/tasks.json; chmod 555 .git;"
        " echo done > ready; while :; do read -t 600 < ready; done"
    )
    with subprocess.Popen([sys.executable, "-c", COMMAND, str(workspace), line, rung]) as process:
        assert (workspace / "ready").read_text() == "done\n"
        assert len(notes()) == 1
        process.kill()
    (workspace / "ready").unlink()
    names = (".envrc", ".vscode", "hooks") if rung == "bubblewrap" else ()
    assert set_aside_left() == told(workspace, *names)
    assert (workspace / ".idea").is_dir() and not os.path.lexists(workspace / ".envrc")
    assert not (workspace / ".git" / "hooks").exists() and not (workspace / ".vscode").exists()
    assert notes() == [] and set_aside_left() == []


def test_next_command_of_another_process_does_not_know_names_of_a_killed_one(workspace: Path) -> None:
    with code_at_work(workspace) as worker:
        (workspace / ".envrc").write_text("evil")
        worker.kill()
        late = LateNames([workspace])
        assert not (workspace / ".envrc").exists() and (workspace / ".envrc.set-aside-1").read_text() == "evil"
        assert late.set_aside() == [] and notes() == []


def test_commands_of_two_processes_at_the_same_time_do_not_know_what_either_makes(workspace: Path) -> None:
    with code_at_work(workspace) as first:
        (workspace / ".envrc").write_text("evil")
        assert set_aside_left() == [] and (workspace / ".envrc").exists(), "its process lives"
        second = LateNames([workspace])
        with code_at_work(workspace) as third:
            assert first.end() == "['.envrc is now .envrc.set-aside-1: only a person makes .envrc here']"
            (workspace / ".envrc").write_text("evil")
            assert second.set_aside() == [".envrc is now .envrc.set-aside-2: only a person makes .envrc here"]
            (workspace / ".envrc").write_text("evil")
            third.kill()
            assert len(set_aside_left()) == 1 and not (workspace / ".envrc").exists()
    (workspace / ".envrc").write_text("mine")
    assert LateNames([workspace]).set_aside() == [] and (workspace / ".envrc").read_text() == "mine"


def test_all_folders_of_a_killed_process_are_looked_at_also_if_one_is_gone(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("gone", "new", "odd \udcff name", "last")]
    for place in places:
        place.mkdir()
    with code_at_work(*places) as worker:
        worker.kill()
    for place in places:
        (place / ".envrc").write_text("x")
    shutil.rmtree(places[0])
    places[1].rename(tmp_path / "before")
    places[1].mkdir()
    (places[1] / ".git").mkdir()  # a person made this folder after the crash
    assert set_aside_left() == [*told(places[2], ".envrc"), *told(places[3], ".envrc")]
    assert (places[1] / ".git").is_dir() and notes() == []


def test_link_in_the_place_of_a_workspace_renames_nothing_elsewhere(workspace: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    late = LateNames([workspace])
    workspace.rename(tmp_path / "moved")
    workspace.symlink_to(home)
    assert late.set_aside() == [] and (home / ".ssh").is_dir()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"mark": ""}',
        '{"mark": "", "before": {"/": 3}}',
        "[" * 100_000,
        "\xff",
        '{"before": []}',
    ],
)
def test_damaged_note_is_told_and_kept_and_stops_no_other(content: str, workspace: Path, state: Path) -> None:
    with code_at_work(workspace) as worker:
        (workspace / ".envrc").write_text("evil")
        worker.kill()
    damaged = state / NOTES_FOLDER / "0.json"
    damaged.write_bytes(content.encode("latin-1"))
    lines = set_aside_left()
    assert f"the note {damaged} on a command that was killed cannot be read" in lines[0]
    assert lines[1:] == told(workspace, ".envrc")
    late = LateNames([workspace])
    (workspace / ".envrc").write_text("evil")
    assert len(late.set_aside()) == 1
    assert notes() == [damaged] and damaged.read_bytes() == content.encode("latin-1")


def below(path: Path) -> Path:
    return path / "below"


def test_name_that_cannot_be_renamed_is_tried_again(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = LateNames([workspace])
    (workspace / ".envrc").write_text("evil")
    with monkeypatch.context() as patched:
        patched.setattr(late_names, "_free_name", below)
        assert ".envrc is new, and only a person makes it here: remove it" in late.set_aside()[0]
    assert set_aside_left() == told(workspace, ".envrc") and notes() == []


def test_code_that_changes_a_workspace_does_not_start_without_its_note(workspace: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # as on a full disk
    try:
        with pytest.raises(SandboxRefused, match="needs a note in .* cannot be written: File too large"):
            LateNames([workspace])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (workspace / ".envrc").write_text("mine")
    assert LateNames([workspace]).set_aside() == [] and notes() == []


def test_without_a_state_folder_names_are_set_aside_at_the_end(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(STATE_HOME, str(tmp_path / "file"))
    late = LateNames([workspace])
    (workspace / ".envrc").write_text("evil")
    assert len(late.set_aside()) == 1 and set_aside_left() == []
