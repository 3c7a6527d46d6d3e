"""A kernel control group for one command: it limits tasks and memory, even of root.

It also shares the processor: otherwise, a command with a thousand busy processes would leave no time for the worker
that must kill it. It uses version 2 of the interface, or version 1 if the machine still has it. Creating a group
usually requires root.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fireswarm.processes.confinement.process_limits import ProcessLimits

MOUNT = Path("/sys/fs/cgroup")
PREFIX = "fireswarm-"

MEMORY_MARGIN = 2
"""The kernel kills processes of a group at this multiple of the limit; at the limit itself, we kill the whole command.
"""

_JOIN = """\
for group; do
    shift
    [ "$group" = -- ] && break
    { echo $$ > "$group/cgroup.procs"; } 2> /dev/null
done
exec "$@"
"""
"""Shell program: enter the groups listed before ``--``, if possible, then become the command after it."""

REMOVAL_SECONDS = 2.0

ABANDONED_SECONDS = 60.0
"""Age at which groups of dead processes are removed.

A new group may belong to a process in another container, which is invisible here.
"""

_left: set[Path] = set()
"""Groups of this process that the kernel has not released yet; removal is retried with each new group."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The folders of a command's groups: one in version 2, one for each kind of limit in version 1."""

    folders: tuple[Path, ...] = ()

    @property
    def prefix(self) -> list[str]:
        """The command prefix that starts a command in the group."""
        return ["/bin/sh", "-c", _JOIN, "sh", *map(str, self.folders), "--"] if self.folders else []

    def close(self) -> None:
        """Remove the group after its processes have ended. The kernel needs a moment to forget them."""
        until = time.monotonic() + REMOVAL_SECONDS
        left = [folder for folder in self.folders if not _remove(folder)]
        while left and time.monotonic() < until:
            time.sleep(0.005)
            left = [folder for folder in left if not _remove(folder)]
        _left.update(left)


def new_control_group(name: str, limits: ProcessLimits) -> ControlGroup:
    """Return a new group with *limits*; an empty one if this process may not create any."""
    _left.difference_update([folder for folder in list(_left) if _remove(folder)])
    made: list[Path] = []
    for parent, written in _places(limits):
        _remove_abandoned(parent)
        folder = parent / f"{PREFIX}{os.getpid()}-{name}"
        try:
            folder.mkdir()
            made.append(folder)
            for file, value in written.items():
                (folder / file).write_text(str(value))
        except OSError:
            for each in made:
                _remove(each)
            return ControlGroup()
    return ControlGroup(tuple(made))


def _remove(folder: Path) -> bool:
    """Remove a group; returns False while it has processes."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@cache
def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of killed processes in *parent*, once in this process."""
    for folder in parent.glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            age = time.time() - folder.stat().st_mtime
            if age > ABANDONED_SECONDS and owner.isdecimal() and not Path("/proc", owner).exists():
                _remove(folder)


def _places(limits: ProcessLimits) -> list[tuple[Path, dict[str, int]]]:
    """Return the parent folders, and the content to write into a new folder in each."""
    if os.name != "posix" or not MOUNT.is_dir():
        return []
    own, memory = _own_groups(), limits.memory_bytes * MEMORY_MARGIN
    if (MOUNT / "cgroup.controllers").is_file():
        # A group with processes cannot pass on its controllers, but its parent usually can.
        parent = (MOUNT / own.get("", "/").lstrip("/")).parent if own.get("", "/") != "/" else MOUNT
        return [(parent, {"pids.max": limits.tasks, "memory.max": memory, "memory.oom.group": 1})]
    wanted: dict[str, dict[str, int]] = {
        "pids": {"pids.max": limits.tasks},
        "memory": {"memory.limit_in_bytes": memory},
        "cpu": {},
    }
    return [
        (MOUNT / kind / own[kind].lstrip("/"), files)
        for kind, files in wanted.items()
        if kind in own and (MOUNT / kind).is_dir()
    ]


def _own_groups() -> dict[str, str]:
    """Return this process's groups by kind; the key of version 2 is empty."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        _, kinds, path = line.split(":", 2)
        found |= dict.fromkeys(kinds.split(","), path)
    return found
