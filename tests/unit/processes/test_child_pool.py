"""Child processes: a kill includes every process that the called function started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.processes.child_pool import run_in_child
from fireswarm.processes.descendants import Descendants
from tests.support.fleet import pid_in

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("children_import_tests"),
    pytest.mark.skipif(sys.platform == "win32", reason="setsid"),
]
LONG_SECONDS = 60


def start_grandchildren(folder: str) -> None:
    """Start a process in the same session, one in a new session, and one whose parent has ended; then hang."""
    write = f"echo $$ > {folder}/$0.part; mv {folder}/$0.part {folder}/$0; sleep {LONG_SECONDS}"
    subprocess.Popen(["bash", "-c", write, "same"])
    subprocess.Popen(["setsid", "bash", "-c", write, "session"])
    subprocess.run(["bash", "-c", 'setsid bash -c "$1" orphan & disown', "x", write], check=True)
    signal.pause()


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def test_cancelling_a_call_kills_all_processes_that_it_started(tmp_path: Path) -> None:
    pids: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_in_child, start_grandchildren, str(tmp_path))
        pids += [await pid_in(tmp_path / name) for name in ("same", "session", "orphan")]
        tasks.cancel_scope.cancel()
    assert [pid for pid in pids if alive(pid)] == []


def test_marks_of_nested_commands_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    outer, inner = Descendants(), Descendants()
    monkeypatch.setenv("FIRESWARM_COMMAND", outer.environment()["FIRESWARM_COMMAND"])
    assert inner.environment({"PATH": "/bin"}) == {"PATH": "/bin", "FIRESWARM_COMMAND": f"{outer.mark} {inner.mark}"}


def test_process_that_starts_a_program_while_it_is_searched_is_killed() -> None:
    """A process has no environment for a moment while it executes a program."""
    own = Descendants()
    again = "os.execv(sys.executable, [sys.executable, '-S', '-c', sys.argv[1], sys.argv[1]])"
    loop = f"import os, sys; {again}"
    processes = [
        subprocess.Popen([sys.executable, "-S", "-c", loop, loop], env=own.environment(), start_new_session=True)
        for _ in range(8)
    ]
    own.kill_all()
    try:
        assert [process.pid for process in processes if process.poll() is None] == []
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert os.environ.get("FIRESWARM_COMMAND", "") == ""
