"""Limits on memory, processes and disk use of a command, enforced by repeated checks.

If possible, the kernel enforces them as well, see `control_group`. The kernel's limit on address space is not used,
since it also counts memory that is only reserved.
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
"""Factor between one interval and the next: a check of all processes of the machine takes milliseconds."""

MEGABYTE = 1_000_000
TASKS_PER_PROCESS = 4
PRLIMIT = "/usr/bin/prlimit"


@dataclass(frozen=True, slots=True)
class Excess:
    """The ``limit`` that a command exceeded, and the reason in words: "it took more than ..."."""

    limit: Literal["time", "memory", "processes", "disk", "folder", "caller", "protection"]
    reason: str


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of a command's folder, and its free bytes at the start of the command.

    The bytes taken since then also include deleted files that are still open, and writes of other processes.
    """

    folder: Path
    free: int

    @classmethod
    def of(cls, folder: Path) -> Disk:
        """Return the current state of the file system of *folder*."""
        try:
            return cls(folder, shutil.disk_usage(folder).free)
        except OSError:
            return cls(folder, 0)

    def count_taken(self) -> int:
        """Return the bytes that were taken since the start, or 0 if the folder is gone."""
        try:
            return self.free - shutil.disk_usage(self.folder).free
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Maximum memory in bytes and maximum number of processes of a command and its child processes.

    For ``disk_bytes`` see `Disk`.
    """

    memory_bytes: int = 4_000 * MEGABYTE
    processes: int = 500
    disk_bytes: int = 10_000 * MEGABYTE
    look_seconds: tuple[float, float] = (0.2, 1.0)
    """First and longest interval between checks. Between two checks, at most the kernel limits the usage."""

    def intervals(self) -> Iterator[float]:
        """Yield the seconds before each check of a command, indefinitely."""
        pause, longest = self.look_seconds
        while True:
            yield pause
            pause = min(pause * SLOWER, longest)

    @property
    def tasks(self) -> int:
        """Maximum number of processes and threads together, for the kernel's limits."""
        return self.processes * TASKS_PER_PROCESS

    @property
    def prefix(self) -> list[str]:
        """The command prefix that limits the tasks of an ordinary user; the limit does not apply to root."""
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
