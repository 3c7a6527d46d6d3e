"""Kill every process that a command or a child started, also one in a new session or without its parent."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import psutil

MARK = "FIRESWARM_COMMAND"
"""Environment variable with the marks of the commands and children to which a process belongs, outermost first."""


ROUNDS = 20
"""Number of searches for remaining processes: a process may start another while it is being killed."""

UNREADABLE_ROUNDS = 5
UNREADABLE_SECONDS = 0.01
"""Number of searches, and the pause after each, for a process that has no environment while it starts a program."""

EXIT_SECONDS = 0.5
"""Maximum time to wait for killed processes to exit before the next search."""


@dataclass(frozen=True, slots=True)
class Descendants:
    """The processes with one mark, without those that existed before the mark."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    before: frozenset[int] = field(default_factory=lambda: frozenset(psutil.pids()))

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return *base* (default: this process's environment) with this mark added."""
        marks = f"{os.environ.get(MARK, '')} {self.mark}".strip()
        return {**(os.environ if base is None else base), MARK: marks}

    def kill_all(self, others: Iterable[psutil.Process] = ()) -> None:
        """Kill these processes and *others*, and wait until they have exited; blocks for a moment."""
        for number in range(ROUNDS):
            marked, unreadable = self._search()
            if number == 0:
                marked = list({*marked, *others})
            for process in marked:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            if marked:
                psutil.wait_procs(marked, timeout=EXIT_SECONDS)
            elif unreadable and number < UNREADABLE_ROUNDS:
                time.sleep(UNREADABLE_SECONDS)
            else:
                return

    def _search(self) -> tuple[list[psutil.Process], bool]:
        """Return the marked processes, and True if there is a new process without an environment."""
        marked: list[psutil.Process] = []
        unreadable = False
        for pid in set(psutil.pids()) - self.before:
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                environment = process.environ()
                if self.mark in environment.get(MARK, "").split():
                    marked.append(process)
                elif not environment and process.exe():  # kernel threads and zombies have no program
                    unreadable = True
        return marked, unreadable


def last_mark(environment: Mapping[str, str]) -> str:
    """Return the mark of the innermost command or child to which *environment* belongs, or ""."""
    return environment.get(MARK, "").rpartition(" ")[2]


running: set[Descendants] = set()
"""Commands in progress in this process, which an immediate exit kills."""


def kill_running() -> None:
    """Kill all commands in progress with their processes, for a process that exits immediately."""
    for own in tuple(running):
        own.kill_all()


def tree(pid: int) -> list[psutil.Process]:
    """Return the descendants of a running process, including those in a new session."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
