"""Run the command ``agent`` in copies of one loaded process, each killed by ``kill -9`` at one of its writes.

``python -m tests.support.killed_agent FOLDER``: its last line has the writes at which it killed.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from fireswarm.cli import agent_command
from fireswarm.runs.sinks.files import RunLog
from fireswarm.runs.sinks.step_file import StepFile
from tests.support.commands import TASK
from tests.support.crashes import choose_moments

LOADED = ("fireswarm.cli.agent.main", "fireswarm.cli.agent.run", "fireswarm.cli.watch.answer")
"""Loaded once here, instead of by each copy."""

OPTIONS = ("--script", "model.py:answer", "--yes")


def _count_writes(then: Callable[[int], None]) -> None:
    """Call *then* after each event and each step that has been written, with its number."""
    writes = 0

    def counted(write: Callable[..., None]) -> Callable[..., None]:
        def wrote(*given: Any) -> None:
            nonlocal writes
            write(*given)
            writes += 1
            then(writes)

        return wrote

    RunLog.event = counted(RunLog.event)  # type: ignore[method-assign]
    StepFile._write = counted(StepFile._write)  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage]


def _command(folder: Path, arguments: tuple[str, ...], then: Callable[[int], None]) -> NoReturn:
    code = 1
    try:
        os.chdir(folder)
        output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        _count_writes(then)
        sys.argv = ["agent", *arguments]
        agent_command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)


def run_copy(folder: Path, *arguments: str, kill_at: int = 0) -> tuple[int, int]:
    """Run the command in a copy of this process; returns its exit code, negative for a signal, and its writes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:

        def then(number: int) -> None:
            os.write(write, b".")
            if number == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        _command(folder, arguments, then)
    os.close(write)
    writes = 0
    while piece := os.read(read, 4_096):
        writes += len(piece)
    os.close(read)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), writes


def main(root: Path, prepare: Callable[[Path], None]) -> list[int]:
    """Kill a run at some of its writes and let it go on, each in a folder of its own below *root*; returns which."""
    for module in LOADED:
        importlib.import_module(module)
    prepare(root / "0")
    code, writes = run_copy(root / "0", "run", TASK, *OPTIONS)
    assert code == 0, (root / "0" / "output").read_text()
    numbers = choose_moments(writes)
    for number in numbers:
        folder = root / str(number)
        prepare(folder)
        killed = run_copy(folder, "run", TASK, *OPTIONS, kill_at=number)
        assert killed == (-signal.SIGKILL, number), (killed, (folder / "output").read_text())
        code, _ = run_copy(folder, "resume", "latest", "--yes")
        assert code == 0, (number, (folder / "output").read_text())
    return numbers


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "model.py").write_bytes((folder.parent / "model.py").read_bytes())


if __name__ == "__main__":
    print(*main(Path(sys.argv[1]), _prepare))
