"""Programs that run to their end within a view: nothing that they started is left."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.view import View
from fireswarm.processes.output import TIMED_OUT
from fireswarm.processes.run import run_confined

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs of these tests need a POSIX shell")

LEAVE_ONE = "setsid sleep 61.7 & echo $!"
"""Starts a process in another session, which keeps the output open."""


def run(folder: Path, script: str, seconds: float = 60.0) -> tuple[int, str]:
    return run_confined(["/bin/sh", "-c", script], View(folder), dict(os.environ), seconds, confinement="none")


def has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_process_in_another_session_ends_with_the_program(tmp_path: Path) -> None:
    code, told = run(tmp_path, LEAVE_ONE)
    assert code == 0
    assert has_ended(int(told))


def test_process_in_another_session_ends_after_the_time(tmp_path: Path) -> None:
    code, told = run(tmp_path, f"{LEAVE_ONE}; sleep 61.7", seconds=0.5)
    assert code == TIMED_OUT
    assert "killed after 0.5 s" in told
    assert has_ended(int(told.split()[0]))


def test_both_streams_of_a_program_are_its_output_in_order(tmp_path: Path) -> None:
    assert run(tmp_path, "echo 1; echo 2 >&2; echo 3") == (0, "1\n2\n3\n")


@pytest.fixture
def confined(tmp_path: Path) -> Path:
    """A folder in which programs can be confined, or a skip with the reason."""
    try:
        with View(tmp_path).confine({}):
            return tmp_path
    except SandboxRefused as error:
        pytest.skip(str(error))


def test_failure_of_bubblewrap_is_not_a_result_of_the_program(confined: Path) -> None:
    with pytest.raises(SandboxRefused, match="could not start /no/such/program"):
        run_confined(["/no/such/program"], View(confined), {}, 60.0)
    code, told = run_confined(["/bin/sh", "-c", "echo 'bwrap: x'; echo y; exit 1"], View(confined), {}, 60.0)
    assert (code, told) == (1, "bwrap: x\ny\n")


def test_line_that_looks_like_one_of_bubblewrap_is_output_of_the_program(confined: Path) -> None:
    code, told = run_confined(["/bin/sh", "-c", "echo 'bwrap: x'; exit 1"], View(confined), {}, 60.0)
    assert (code, told) == (1, "bwrap: x\n")


def test_readable_folder_may_begin_with_the_home_folder(confined: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, workspace = confined / "home", confined / "workspace"
    workspace.mkdir()
    (home / "data").mkdir(parents=True)
    (home / "data" / "note").write_text("seen\n")
    monkeypatch.setenv("HOME", str(home))
    view = View(workspace, readable=(Path("~/data"),))
    assert run_confined(["/bin/cat", str(home / "data" / "note")], view, {}, 60.0) == (0, "seen\n")
