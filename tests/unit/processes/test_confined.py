"""Programs that run to their end within a view: nothing that they started is left."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import psutil
import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement import control_group
from fireswarm.processes.confinement.bubblewrap import Launch
from fireswarm.processes.confinement.process_limits import Excess, ProcessLimits
from fireswarm.processes.confinement.view import View
from fireswarm.processes.output import KILLED, TIMED_OUT, OutputTail
from fireswarm.processes.run import LIMITS, CannotStart, Confined, Program, run_confined
from tests.support.patience import PATIENCE_SECONDS

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


def test_output_of_many_times_what_a_pipe_holds_arrives_whole(tmp_path: Path) -> None:
    code, told = run(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x")
    assert (code, told.count("x"), len(told)) == (0, 3_000_000, 3_000_000)


def test_process_of_the_group_that_has_no_parent_and_no_environment_ends_with_the_program(tmp_path: Path) -> None:
    hides = "(env -i /bin/sh -c 'trap \"\" TERM; echo $$ > pid; exec sleep 61.7' &)"
    assert run(tmp_path, f"{hides}; while [ ! -s pid ]; do :; done") == (0, "")
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_output_that_a_process_beyond_every_search_holds_open_is_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_group, "REMOVAL_SECONDS", 0.02)
    escapes = f"(env -i setsid /bin/sh -c 'echo $$ > pid; exec sleep {PATIENCE_SECONDS}' &)"
    try:
        assert run(tmp_path, f"{escapes}; while [ ! -s pid ]; do :; done; echo said") == (0, "said\n")
        assert not has_ended(int((tmp_path / "pid").read_text())), "the end was noticed after the output's only"
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(int((tmp_path / "pid").read_text())).kill()


def test_program_whose_caller_has_ended_is_killed_at_once(tmp_path: Path) -> None:
    script = "trap 'echo goes on' TERM; echo > ready; while :; do :; done"
    ended = run_confined(
        ["/bin/sh", "-c", script],
        View(tmp_path),
        dict(os.environ),
        PATIENCE_SECONDS,
        confinement="none",
        has_ended=(tmp_path / "ready").exists,
    )
    assert ended == (KILLED, "\nended: its caller has ended")


def test_program_that_closed_its_output_may_clean_up_before_it_is_killed(tmp_path: Path) -> None:
    script = "exec >&- 2>&-; trap 'echo bye > told; exit' TERM; echo > ready; sleep 61.7 & wait"
    program = Program(["/bin/sh", "-c", script], tmp_path)
    enough, ready = Excess("caller", "it is enough"), tmp_path / "ready"
    started = Confined.start(program, None, LIMITS, OutputTail(100))
    started.wait(PATIENCE_SECONDS, lambda: enough if ready.exists() else None, grace=PATIENCE_SECONDS)
    assert (tmp_path / "told").read_text() == "bye\n"


def test_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="cannot start /no/such/program in "):
        run_confined(["/no/such/program", "word"], View(tmp_path), {}, 60.0, confinement="none")


class Marked(ProcessLimits):
    """Limits that set a variable of the command."""

    @property
    def prefix(self) -> list[str]:
        return ["/usr/bin/env", "LIMITED=yes"]


class Open:
    """A view of the whole machine."""

    @contextlib.contextmanager
    def confine(self, environment: Mapping[str, str]) -> Generator[Launch]:
        yield Launch([], dict(environment))


@pytest.mark.parametrize(("view", "limited"), [(Open(), "yes\n"), (None, "\n")], ids=["view", "no view"])
def test_limits_precede_the_command_of_a_view_only(tmp_path: Path, view: Open | None, limited: str) -> None:
    output = OutputTail(100)
    program = Program(["/bin/sh", "-c", "echo $LIMITED"], tmp_path)
    Confined.start(program, view, Marked(), output).wait(PATIENCE_SECONDS)
    assert output.text() == limited


@pytest.fixture
def confined(tmp_path: Path) -> Path:
    """A folder in which programs can be confined, or a skip with the reason."""
    try:
        with View(tmp_path).confine({}):
            return tmp_path
    except SandboxRefused as error:
        pytest.skip(str(error))


def test_failure_of_bubblewrap_is_not_a_result_of_the_program(confined: Path) -> None:
    with pytest.raises(SandboxRefused, match="/no/such/program could not be started confined"):
        run_confined(["/no/such/program"], View(confined), {}, 60.0)
    code, told = run_confined(["/bin/sh", "-c", "echo 'bwrap: x'; echo y; exit 1"], View(confined), {}, 60.0)
    assert (code, told) == (1, "bwrap: x\ny\n")


def test_line_that_looks_like_one_of_bubblewrap_is_output_of_the_program(confined: Path) -> None:
    code, told = run_confined(["/bin/sh", "-c", "echo 'bwrap: x'; exit 1"], View(confined), {}, 60.0)
    assert (code, told) == (1, "bwrap: x\n")


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        ("echo 'prlimit: failed to x'", 0, "prlimit: failed to x\n"),
        ("echo 'prlimit: failed to x'; echo y; exit 1", 1, "prlimit: failed to x\ny\n"),
        ("printf 'prlimit: failed to x'; exit 1", 1, "prlimit: failed to x"),
    ],
    ids=["success", "two lines", "half a line"],
)
def test_output_that_begins_as_that_of_a_launcher_is_of_the_program(
    confined: Path, script: str, code: int, told: str
) -> None:
    assert run_confined(["/bin/sh", "-c", script], View(confined), {}, 60.0) == (code, told)


def test_readable_folder_may_begin_with_the_home_folder(confined: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, workspace = confined / "home", confined / "workspace"
    workspace.mkdir()
    (home / "data").mkdir(parents=True)
    (home / "data" / "note").write_text("seen\n")
    monkeypatch.setenv("HOME", str(home))
    view = View(workspace, readable=(Path("~/data"),))
    assert run_confined(["/bin/cat", str(home / "data" / "note")], view, {}, 60.0) == (0, "seen\n")
