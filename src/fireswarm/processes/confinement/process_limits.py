"""Limits on memory, processes and disk use of a command, enforced by repeated checks.

If possible, the kernel enforces them as well, see `control_group`. The kernel's limit on address space is not used,
since it also counts memory that is only reserved.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
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
class Baseline:
    """What a machine has free before a command: bytes of file systems by a folder of each, and its shared memory.

    What was taken since then includes deleted files that are still open, files in memory (``memfd``, ``tmpfs``), and
    what other processes took.
    """

    free: Mapping[Path, int]
    shared: int

    @classmethod
    def now(cls, folder: Path) -> Baseline:
        """Return the usage for a command in *folder*, with temporary files where this process has them."""
        return cls({place: _free_of(place) for place in {folder, Path(tempfile.gettempdir())}}, _count_shared())

    def count_disk(self) -> int:
        """Return the bytes that were taken since then on the file system that lost the most."""
        return max(free - left if (left := _free_of(place)) else 0 for place, free in self.free.items())

    def count_shared(self) -> int:
        """Return the bytes by which shared memory and files in memory grew."""
        return _count_shared() - self.shared


def _free_of(folder: Path) -> int:
    """Return the free bytes of a file system; 0 if the folder is gone."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _count_shared() -> int:
    """Return the bytes of shared memory and of files in memory on this machine; 0 where it does not tell."""
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith("Shmem:")), 0)


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Maximum memory in bytes and maximum number of processes of a command and its child processes.

    For ``disk_bytes`` see `Baseline`.
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

    def exceeded_by(self, pid: int, before: Baseline) -> Excess | None:
        """Return the limit that the command of process *pid* exceeds, or None; *before* is from its start."""
        if before.count_disk() > self.disk_bytes:
            return Excess("disk", f"it took more than {self.disk_bytes // MEGABYTE:,} MB of disk")
        processes = tree(pid)
        if len(processes) > self.processes:
            return Excess("processes", f"it had more than {self.processes:,} processes")
        memory = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                memory += process.memory_info().rss
        told = f"it took more than {self.memory_bytes // MEGABYTE:,} MB of memory"
        if memory > self.memory_bytes:
            return Excess("memory", told)
        return Excess("memory", f"{told} for files in memory") if before.count_shared() > self.memory_bytes else None
