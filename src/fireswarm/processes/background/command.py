"""A background command, confined and limited like one in the foreground. All its child processes end with it."""

from __future__ import annotations

import signal
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
from fireswarm.processes.startup import OWN_MODULE

GUARD = "fireswarm.processes.background.guard"


@dataclass(slots=True)
class BackgroundCommand:
    """A command in progress or ended; at its end, ``ended`` is set and ``end`` describes how it ended."""

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
        """Start *command* in *cwd*, confined to *view* if given. It is killed after *seconds* at the latest.

        Raises SandboxRefused if it cannot be confined, and CannotStart.
        """
        if view is not None:
            await anyio.to_thread.run_sync(view.check)
        output, program = RecentOutput(shell.max_output_bytes), shell.program(command, cwd)
        with ExitStack() as guard:
            # The other ways of confinement end a command together with this process.
            if view is None or view.confinement == "container":
                words = (*OWN_MODULE, GUARD, program.own.mark)
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
        """Kill the command and its child processes, and wait until they have ended. Blocks."""
        self._started.stop()
        self.wait()

    def wait(self) -> None:
        """Wait for the end. Blocks."""
        self.ended.wait()

    def _follow(self) -> None:
        """Wait for the end of the command, or kill it at a limit; then kill all remaining child processes."""
        try:
            self.end = self._describe(self._started.wait(self._seconds, grace=KILL_AFTER_SECONDS))
        finally:
            self._guard.close()
            self.ended.set()
            self.output.wake()

    def _describe(self, ended: Ended) -> str:
        match ended.excess.limit if ended.excess else "":
            case "time":
                return f"was killed after {self._seconds:,g} s, its time limit"
            case "caller":
                return "was stopped"
            case "":
                return _describe_exit(ended.code)
            case _:
                return f"was killed: {ended.reason}"


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
