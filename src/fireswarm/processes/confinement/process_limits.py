"""Limits on the memory, the processes and the disk of a command, by looking at them again and again.

Where the kernel lets us, it enforces them as well, see `control_group`. Its limit on address space is not used: that
also counts memory that is only reserved.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from fireswarm.processes.descendants import tree

SLOWER = 1.5
"""Factor between one interval and the next: a look at all processes of the machine takes milliseconds."""

MEGABYTE = 1_000_000
TASKS_PER_PROCESS = 4
PRLIMIT = "/usr/bin/prlimit"


@dataclass(frozen=True, slots=True)
class Excess:
    """The ``limit`` that a command exceeded, and the reason to end it in words: "it took more than ..."."""

    limit: Literal["time", "memory", "processes", "disk", "folder", "caller"]
    reason: str


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of a command's folder, and its free bytes when the command started.

    What was taken from it since then also counts deleted files that are still open, and what others write meanwhile.
    """

    folder: Path
    free: int

    @classmethod
    def of(cls, folder: Path) -> Disk:
        """Return the file system of *folder* as it is now."""
        try:
            return cls(folder, shutil.disk_usage(folder).free)
        except OSError:
            return cls(folder, 0)

    def count_taken(self) -> int:
        """Return the bytes that were taken since the start; 0 if the folder is gone."""
        try:
            return self.free - shutil.disk_usage(self.folder).free
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Most memory, in bytes, and most processes of a command and all that it starts; ``disk_bytes`` see `Disk`."""

    memory_bytes: int = 4_000 * MEGABYTE
    processes: int = 500
    disk_bytes: int = 10_000 * MEGABYTE
    look_seconds: tuple[float, float] = (0.2, 1.0)
    """First and longest interval of the checks. Usage between two checks is limited by the kernel, if at all."""

    def intervals(self) -> Iterator[float]:
        """Yield the seconds before each check of a command, without end."""
        pause, longest = self.look_seconds
        while True:
            yield pause
            pause = min(pause * SLOWER, longest)

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

    def exceeded_by(self, pid: int, disk: Disk) -> Excess | None:
        """Return the limit that the command of process *pid* exceeds, or None."""
        if disk.count_taken() > self.disk_bytes:
            return Excess("disk", f"it took more than {self.disk_bytes // MEGABYTE:,} MB of disk")
        processes = tree(pid)
        if len(processes) > self.processes:
            return Excess("processes", f"it had more than {self.processes:,} processes")
        memory = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                memory += process.memory_info().rss
        if memory > self.memory_bytes:
            return Excess("memory", f"it took more than {self.memory_bytes // MEGABYTE:,} MB of memory")
        return None
