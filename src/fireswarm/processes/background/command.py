"""A command in the background, confined and limited as one in the foreground. All that it started ends with it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from fireswarm.processes.background.recent_output import RecentOutput
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import LIMITS, Confined, Ended, Program
from fireswarm.processes.shell import KILL_AFTER_SECONDS, Shell

GUARD = "fireswarm.processes.background.guard"


@dataclass(slots=True)
class BackgroundCommand:
    """A command in progress, or one that has ended: then ``ended`` is set and ``end`` says how."""

    output: RecentOutput
    _started: Confined
    _seconds: float
    _guard: ExitStack
    end: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    _began: float = field(default_factory=time.monotonic)

    @classmethod
    async def start(
        cls, shell: Shell, command: str, cwd: Path, seconds: float, view: View | None = None
    ) -> BackgroundCommand:
        """Start *command* in *cwd*, confined to *view* if given. It is ended after *seconds* at the latest.

        Raises SandboxRefused if it cannot be confined, and CannotStart.
        """
        if view is not None:
            await anyio.to_thread.run_sync(view.check)
        output, program = RecentOutput(shell.max_output_bytes), shell.program(command, cwd)
        with ExitStack() as guard:
            if view is None or view.container:  # bubblewrap ends its command with this process by itself
                words = (sys.executable, "-m", GUARD, program.own.mark)
                guard.callback(Confined.start(Program(words, Path.cwd()), None, LIMITS).kill)
            process = Confined.start(program, view, shell.limits, output)
            started = cls(output, process, seconds, guard.pop_all())
        threading.Thread(target=started._follow, name="background-command", daemon=True).start()
        return started

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def stop(self) -> None:
        """End the command with all that it started, and wait for that. Blocks."""
        self._started.stop()
        self.wait()

    def wait(self) -> None:
        """Wait for the end. Blocks."""
        self.ended.wait()

    def _follow(self) -> None:
        """Wait for the end of the command, or end it at a limit; then end all that it left."""
        try:
            self.end = self._describe(self._started.wait(self._seconds, grace=KILL_AFTER_SECONDS))
        finally:
            self._guard.close()
            self.ended.set()
            self.output.wake()

    def _describe(self, ended: Ended) -> str:
        match ended.excess.limit if ended.excess else "":
            case "time":
                return f"was ended after {self._seconds:,g} s, its time limit"
            case "caller":
                return "was stopped"
            case "":
                return _describe_exit(ended.code)
            case _:
                return f"was ended: {ended.reason}"


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
