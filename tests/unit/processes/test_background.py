"""Background commands of a hostile model: none gets more than one in the foreground, and none outlives its caller."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import psutil
import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.background.command import GUARD, BackgroundCommand
from fireswarm.processes.background.recent_output import UNFINISHED_BYTES, RecentOutput
from fireswarm.processes.confinement.control_group import new_control_group
from fireswarm.processes.confinement.process_limits import MEGABYTE, ProcessLimits
from fireswarm.processes.confinement.view import View
from fireswarm.processes.descendants import kill_running
from fireswarm.processes.output import TO_A_FILE
from fireswarm.processes.run import CannotStart
from fireswarm.processes.shell import Shell
from fireswarm.processes.startup import OWN_MODULE
from tests.support.patience import PATIENCE_SECONDS
from tests.support.processes import own_control_groups
from tests.unit.processes.test_view import SECRET, SHELL, WRITING, state, workspace

__all__ = ["workspace"]

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap runs on Linux")]

NAP = f"63.{os.getpid()}"
"""An argument that tells the processes of this test from all others."""

DAEMON = (
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
    "        print('deep', flush=True); time.sleep(%s)\n"
)
"""A program that leaves a process in a session of its own, without a parent."""

_started: list[BackgroundCommand] = []


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    while _started:
        _started.pop().stop()


def naps(nap: str = NAP) -> list[int]:
    """Processes that sleep for the time of this test."""
    listed = psutil.process_iter(["cmdline"])
    return [each.pid for each in listed if nap in " ".join(each.info["cmdline"] or ())]


async def start(
    line: str, folder: Path, view: View | None = None, *, seconds: float = 60, shell: Shell = SHELL
) -> BackgroundCommand:
    command = await BackgroundCommand.start(shell, line, folder, seconds, view)
    _started.append(command)
    return command


async def ended(command: BackgroundCommand) -> str:
    with anyio.fail_after(PATIENCE_SECONDS):
        await anyio.to_thread.run_sync(command.wait)
    return command.end


async def first_output(command: BackgroundCommand) -> str:
    await anyio.to_thread.run_sync(command.output.wait_for_more, 30.0, command.ended)
    return command.output.take(ended=False)


CONFINEMENTS: dict[str, Callable[[Path], View | None]] = {
    "bubblewrap": lambda folder: View(folder, writable=True),
    "read-only": lambda folder: View(folder),
    "container": lambda folder: View(folder, writable=True, confinement="container"),
    "none": lambda folder: None,
}


@pytest.fixture(params=CONFINEMENTS)
def view(request: pytest.FixtureRequest, workspace: Path) -> View | None:
    return CONFINEMENTS[request.param](workspace)


async def test_command_goes_on_while_its_output_is_read(workspace: Path) -> None:
    line = "echo one; read line < pipe; echo $line; exit 3"
    os.mkfifo(workspace / "pipe")
    (workspace / "pipe").chmod(0o666)
    command = await start(line, workspace, View(workspace, writable=True))
    assert (await first_output(command), command.ended.is_set()) == ("one\n", False)
    (workspace / "pipe").write_text("two\n")
    assert await ended(command) == "ended with exit code 3"
    assert command.output.take(ended=True) == "two\n"


async def test_stopped_command_leaves_nothing(workspace: Path, view: View | None) -> None:
    command = await start(f'python3 -c "{DAEMON % NAP}"; sleep {NAP}', workspace, view)
    while "deep" not in await first_output(command):
        assert not command.ended.is_set()
    assert naps()
    await anyio.to_thread.run_sync(command.stop)
    assert (command.end, naps()) == ("was stopped", [])


async def test_left_processes_end_with_their_command(workspace: Path, view: View | None) -> None:
    command = await start(f'python3 -c "{DAEMON % NAP}"; sleep 0.2', workspace, view)
    assert await ended(command) == "ended with exit code 0"
    assert naps() == []


async def test_process_that_hides_from_the_search_does_not_hold_up_the_end(workspace: Path, view: View | None) -> None:
    command = await start(f"env -i setsid sleep {NAP} & echo ready; sleep 60", workspace, view)
    await first_output(command)
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            await anyio.to_thread.run_sync(command.stop)
        assert command.end == "was stopped"
        if view is not None and view.confinement != "container":
            assert naps() == []
    finally:
        for pid in naps():
            os.kill(pid, signal.SIGKILL)


async def test_hidden_process_that_writes_without_end_does_not_hold_up_the_end(workspace: Path) -> None:
    command = await start(f"env -i setsid yes {NAP} & echo ready; sleep 60", workspace)
    await first_output(command)
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            await anyio.to_thread.run_sync(command.stop)
        assert command.end == "was stopped"
    finally:
        for pid in naps():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def test_time_limit_holds_in_the_background(workspace: Path, view: View | None) -> None:
    command = await start(f"trap '' TERM; setsid sleep {NAP} & sleep {NAP}", workspace, view, seconds=1)
    assert await ended(command) == "was killed after 1 s, its time limit"
    assert naps() == []


@pytest.mark.parametrize("batch", range(4))
async def test_read_only_background_command_changes_nothing(workspace: Path, batch: int) -> None:
    before, outside = state(workspace), state(workspace.parent)
    for line in WRITING[batch::16]:
        command = await start(line, workspace, View(workspace), seconds=3)
        await ended(command)
        assert state(workspace) == before, line
        assert state(workspace.parent) == outside, line


async def test_read_only_background_command_finds_no_secret(workspace: Path) -> None:
    command = await start(
        "env; cat /proc/*/environ | tr '\\0' '\\n'; cat link ../outside.txt", workspace, View(workspace)
    )
    await ended(command)
    told = command.output.take(ended=True)
    assert SECRET not in told and "PATH=/usr/local/bin" in told


async def test_fork_bomb_in_the_background_is_killed(workspace: Path) -> None:
    limits = ProcessLimits(processes=60)
    with closing(new_control_group("trial", limits)) as group:
        if not group.folders and not limits.prefix:
            pytest.skip("root cannot make control groups here: a bomb would take the whole machine for seconds")
    line = f"bomb() {{ bomb | bomb & sleep {NAP}; }}; bomb; sleep {NAP}"
    before = own_control_groups()
    command = await start(line, workspace, View(workspace), shell=replace(SHELL, limits=limits))
    assert await ended(command) == "was killed: it had more than 60 processes"
    assert own_control_groups() <= before
    assert naps() == []


async def test_disk_limit_holds_in_the_background(workspace: Path) -> None:
    shell = replace(SHELL, limits=ProcessLimits(disk_bytes=100 * MEGABYTE))
    command = await start(
        "head -c 400000000 /dev/zero > big; sleep 60", workspace, View(workspace, writable=True), shell=shell
    )
    assert await ended(command) == "was killed: it took more than 100 MB of disk"


async def test_endless_output_is_bounded_and_lets_others_work(workspace: Path) -> None:
    command = await start("yes 0123456789", workspace, View(workspace), seconds=1)
    turns = 0
    while not command.ended.is_set():
        await anyio.lowlevel.checkpoint()
        turns += 1
    told = command.output.take(ended=True)
    assert command.output.total > 100 * len(told) > 0
    assert len(told) < SHELL.max_output_bytes + 200
    assert "bytes were dropped" in told.splitlines()[0]
    assert turns > 20, "the event loop was kept from its work"


async def test_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    before = own_control_groups()
    with pytest.raises(CannotStart, match="null byte"):
        await start("echo \0", tmp_path)
    with pytest.raises(CannotStart, match="/nowhere/bash does not exist"):
        await start("echo", tmp_path, shell=Shell(("/nowhere/bash", "-c")))
    with pytest.raises(SandboxRefused, match="No such file"):
        await start("echo", tmp_path / "gone", View(tmp_path / "gone"))
    assert own_control_groups() <= before


async def test_immediate_exit_kills_commands_in_the_background(workspace: Path, view: View | None) -> None:
    command = await start(f"echo x; setsid sleep {NAP}", workspace, view)
    await first_output(command)
    await anyio.to_thread.run_sync(kill_running)
    await ended(command)
    assert naps() == []


OWNER = """
import sys
from pathlib import Path
import anyio
from fireswarm.processes.background.command import GUARD, BackgroundCommand
from fireswarm.processes.confinement.view import View
from fireswarm.processes.shell import Shell
from fireswarm.processes.startup import OWN_MODULE

async def main() -> None:
    folder, kind, line = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    views = {"none": None, "container": View(folder, True, confinement="container"), "bubblewrap": View(folder, True)}
    command = await BackgroundCommand.start(
        Shell(("/bin/bash", "-c"), 16_000, {"PATH": "/usr/bin:/bin"}), line, folder, 60, views[kind]
    )
    await anyio.to_thread.run_sync(command.output.wait_for_more, 30.0, command.ended)
    print("ready", flush=True)
    await anyio.sleep(60)

anyio.run(main)
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "container", "none"])
def test_command_ends_with_a_process_that_is_killed(workspace: Path, kind: str) -> None:
    nap = f"64.{os.getpid()}"
    line = f'python3 -c "{DAEMON % nap}"; sleep {nap}'
    words = [sys.executable, "-c", OWNER, str(workspace), kind, line]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "ready\n"
        assert naps(nap)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    until = time.monotonic() + 20
    while naps(nap) and time.monotonic() < until:
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended since it was listed
            psutil.wait_procs([psutil.Process(pid) for pid in naps(nap)], timeout=0.2)
    assert naps(nap) == []


def test_half_a_line_is_shown_and_comes_again_when_it_is_whole() -> None:
    output = RecentOutput(1_000)
    output.add(b"a\nPassword: se")
    assert output.take(ended=False) == "a\nPassword: se"
    output.add(b"same\nnext")
    assert output.take(ended=False) == "Password: sesame\nnext"
    assert output.take(ended=True) == "next"
    assert output.take(ended=True) == ""


def test_long_line_without_an_end_is_not_repeated() -> None:
    output = RecentOutput(100_000)
    output.add(b"x" * (UNFINISHED_BYTES + 1))
    assert len(output.take(ended=False)) == UNFINISHED_BYTES + 1
    assert output.take(ended=False) == ""


def test_only_what_was_dropped_unread_is_noted() -> None:
    output = RecentOutput(4)
    output.add(b"a\nb\n")
    assert output.take(ended=False) == "a\nb\n"
    output.add(b"c\nd\n")
    assert output.take(ended=False) == "c\nd\n"
    output.add(b"e\nf\ng\nh\n")
    assert output.take(ended=False) == f"[4 bytes were dropped: read sooner, or {TO_A_FILE}]\ng\nh\n"


def is_guard(process: psutil.Process) -> bool:
    """Return True for a running guard; False for one that ends meanwhile."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE and GUARD in process.cmdline()
    except psutil.NoSuchProcess:
        return False


async def test_the_guard_runs_no_module_of_the_workspace(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard has the rights of the worker, and starts in the folder where the model writes."""
    marker = tmp_path / "marker"
    plant = f"open({str(marker)!r}, 'w').close()\n"
    for name in ("psutil.py", "fireswarm/__init__.py", "fireswarm/processes/__init__.py"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(plant)
    monkeypatch.chdir(workspace)
    command = await BackgroundCommand.start(SHELL, f"sleep {NAP}", workspace, 60, None)
    _started.append(command)
    children = psutil.Process().children(recursive=True)
    assert len([item for item in children if is_guard(item)]) == 1
    command.stop()
    done = await anyio.run_process([*OWN_MODULE, GUARD, "no-mark"], cwd=workspace, input=b"", check=False)
    assert done.returncode == 0
    assert not marker.exists()
