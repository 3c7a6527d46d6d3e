"""Limits on the memory and the number of the processes of a command, by looking at them several times a second.

Where the kernel lets us, it enforces them as well, see `control_group`. Its limit on address space is not used: that
also counts memory that is only reserved.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from fireswarm.processes.descendants import tree

LOOK_SECONDS = 0.2
"""Interval of the checks. Usage between two checks is not limited."""

MEGABYTE = 1_000_000
TASKS_PER_PROCESS = 4
PRLIMIT = "/usr/bin/prlimit"


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Most memory, in bytes, and most processes of a command and all that it starts."""

    memory_bytes: int = 4_000 * MEGABYTE
    processes: int = 500

    @property
    def tasks(self) -> int:
        """Most processes and threads together, for the kernel's limits."""
        return self.processes * TASKS_PER_PROCESS

    @property
    def prefix(self) -> list[str]:
        """The words before a command that limit the tasks of an ordinary user; the limit does not bind root."""
        if os.name != "posix" or os.geteuid() == 0 or not Path(PRLIMIT).exists():
            return []
        return [PRLIMIT, f"--nproc={self.tasks}", "--"]

    def exceeded_by(self, pid: int) -> str:
        """Return the reason to end the command of process *pid*, or ""."""
        processes = tree(pid)
        if len(processes) > self.processes:
            return f"it had more than {self.processes:,} processes"
        memory = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                memory += process.memory_info().rss
        if memory > self.memory_bytes:
            return f"it took more than {self.memory_bytes // MEGABYTE:,} MB of memory"
        return ""
