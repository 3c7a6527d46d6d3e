"""A system that refuses processes or threads: one line that says what to do, and a fleet that goes on trying."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fireswarm.cli.shared.errors import report_errors
from fireswarm.processes.startup import require_threads, why_exhausted
from tests.support.fleet import environment, lay_out
from tests.support.patience import PATIENCE_SECONDS

LIMIT = "error (error): the limit of processes and threads is reached: end some, or raise it (`ulimit -u`, "

NO_THREADS = """
import sys, threading
start, left = threading.Thread.start, [{left}]
def refuse(self):
    left[0] -= 1
    if left[0] < 0:
        raise RuntimeError("can't start new thread")
    start(self)
threading.Thread.start = refuse
from fireswarm.cli import swarm_command
swarm_command()
"""
"""Runs a command that can start a few threads only."""

NO_PROCESSES = """
import errno, sys, _posixsubprocess
def refuse(*args):
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
import multiprocessing.util, subprocess
_posixsubprocess.fork_exec = subprocess._fork_exec = refuse
from fireswarm.cli import swarm_command
swarm_command()
"""
"""Runs a command that can start no process."""


@pytest.mark.parametrize(
    ("line", "left"), [("up", 0), ("up", 30), ("demo", 5), ("demo", 30), ("tasks", 0), ("tasks", 5), ("role scout", 5)]
)
def test_command_without_threads_says_what_to_do(line: str, left: int, tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    done = subprocess.run(
        [sys.executable, "-c", NO_THREADS.format(left=left), *line.split()],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(LIMIT)


def test_fleet_without_processes_tries_again_until_it_is_stopped(tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    with subprocess.Popen(
        [sys.executable, "-c", NO_PROCESSES, "up", "--roles", "scout"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    assert process.returncode == 0
    for number, line in enumerate(lines, 1):
        assert "scout-1 cannot be started (the limit of processes and threads is reached" in line
        assert f"(restart {number}, in " in line
    assert "Traceback" not in rest


def test_threads_are_tried_and_ended() -> None:
    before = threading.active_count()
    require_threads(50)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BlockingIOError(errno.EAGAIN, "fork"), "the limit of processes and threads"),
        (RuntimeError("can't start new thread"), "the limit of processes and threads"),
        (ExceptionGroup("", [OSError(errno.ENOMEM, "fork")]), "there is no memory left"),
        (OSError(errno.EMFILE, "open", "a file"), "the limit of open files"),
        (MemoryError(), "there is no memory left"),
    ],
)
def test_what_the_system_refuses_is_one_line(error: Exception, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), report_errors():
        raise error
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [RuntimeError("a fault of ours"), OSError(errno.EINVAL, "without a file"), KeyError()]
)
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    assert why_exhausted(error) == ""
    with pytest.raises((type(error), ExceptionGroup)), report_errors(OSError):
        raise error
