"""A process whose code works in folders, to be ended or killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

CODE = """
import sys
from pathlib import Path
from fireswarm.processes.confinement.paths.late_names import LateNames
late = LateNames([Path(folder) for folder in sys.argv[1:]])
print("ready", flush=True)
sys.stdin.readline()
print(late.set_aside(), flush=True)
"""
"""A process whose code works in folders until a line of input."""


@dataclass
class WorkingProcess:
    process: subprocess.Popen[str]

    def end(self) -> str:
        out, _ = self.process.communicate("\n")
        return out.strip()

    def kill(self) -> None:
        """Kill it as the kernel does without memory. It stays a zombie, as below a parent that is busy."""
        self.process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)


@contextlib.contextmanager
def code_at_work(*folders: Path) -> Generator[WorkingProcess]:
    words = [sys.executable, "-c", CODE, *map(str, folders)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield WorkingProcess(process)
        finally:
            process.kill()
