"""Run a model's code once, in a strict view of a folder that persists between runs."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import Field

from fireswarm.contracts.base import Contract
from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.processes.confinement.bubblewrap import memory_file
from fireswarm.processes.confinement.mounts import interpreter, shared_python
from fireswarm.processes.confinement.process_limits import PRLIMIT, Excess, ProcessLimits
from fireswarm.processes.confinement.view import SANDBOX, View
from fireswarm.processes.output import KILLED, OutputTail
from fireswarm.processes.run import CannotStart, Confined, Ended, Program

LOOK_SECONDS = (0.1, 0.1)
"""Interval of the checks of memory and folder size. It is short because usage between two checks is not limited."""

OWN_PROCESSES = 8
"""Number of processes that belong to the sandbox, not to the code: bubblewrap's, and those that start the code."""

MAX_OPEN_FILES = 256
MAX_LISTED = 100
USERS = range(61_184, 65_520)
"""User ids that systemd reserves for transient users; no files belong to them."""

CODE = "/run/main"
"""File with the code in the sandbox."""

ENDS = {"time": "timeout", "disk": "folder"}
"""Names of limits in the result, where they differ from those of the process."""


class SandboxLimits(Contract):
    """Limits of each run. Total memory and the folder are checked ten times a second; the kernel enforces the rest.

    ``timeout_seconds`` is the maximum that a call may request.
    """

    timeout_seconds: float = Field(default=30.0, gt=0, le=3_600, description="wall-clock time limit")
    cpu_seconds: int = Field(default=30, ge=1, le=3_600, description="CPU time limit per process")
    memory_bytes: int = Field(
        default=512_000_000, ge=64_000_000, description="memory limit for all processes together, and for each"
    )
    max_processes: int = Field(default=64, ge=2, le=4_096, description="threads count")
    max_output_bytes: int = Field(
        default=64_000,
        ge=1_000,
        le=10_000_000,
        description="output limit per stream; the beginning and the end are kept",
    )
    max_folder_bytes: int = Field(default=100_000_000, ge=1_000_000, description="limit for the size of all files")
    max_files: int = Field(default=2_000, ge=1, le=100_000)


@dataclass(frozen=True, slots=True)
class CodeRun:
    """One run of *code* in *folder*. All processes of the run end with it."""

    language: str
    code: str
    folder: Path
    limits: SandboxLimits
    stdin: str = ""

    async def run(self) -> dict[str, Any]:
        """Return exit code, outputs, seconds, and the limit that ended the run.

        Raises SandboxRefused without a sandbox.

        The exit code is 128 plus the signal number if it was killed.
        """
        if os.name == "posix" and os.geteuid() == 0:
            _give_to_a_user(self.folder)
        view = View(self.folder, writable=True, strict=True, files={CODE: self.code.encode()})
        await anyio.to_thread.run_sync(view.check)
        out, err = OutputTail(self.limits.max_output_bytes), OutputTail(self.limits.max_output_bytes)
        limits = ProcessLimits(
            self.limits.memory_bytes, self.limits.max_processes + OWN_PROCESSES, look_seconds=LOOK_SECONDS
        )
        began = time.monotonic()
        with memory_file(self.stdin.encode()) as stdin:
            program = Program(self._words(), self.folder, _environment(), stdin)
            try:
                started = Confined.start(program, view, limits, out, err)
            except CannotStart as error:
                raise SandboxRefused(str(error)) from error
            ended = await started.finish(self.limits.timeout_seconds, self._check_folder)
        if reason := started.start_failure(ended, err.text()):
            reason = truncate(reason, MAX_DETAIL_CHARS)
            raise SandboxRefused(f"bubblewrap cannot create a sandbox on this machine: {reason}")
        result: dict[str, Any] = {"exit_code": _exit_code(ended), "stdout": out.text(), "stderr": err.text()}
        result["seconds"] = round(time.monotonic() - began, 3)
        if ended.excess is not None:
            result["ended"] = ENDS.get(ended.excess.limit, ended.excess.limit)
        return result

    def _words(self) -> list[str]:
        """Return the command: the kernel limits, then the interpreter."""
        if self.language not in ("python", "shell"):
            raise InvalidInput(f"unsupported language {self.language!r}: use python or shell")
        if not Path(PRLIMIT).exists():
            raise SandboxRefused(f"the sandbox needs {PRLIMIT} (package util-linux)")
        limits = {
            "core": 0,
            "cpu": self.limits.cpu_seconds,
            "as": self.limits.memory_bytes,
            "fsize": self.limits.max_folder_bytes,
            "nofile": MAX_OPEN_FILES,
            "memlock": 0,
            "msgqueue": 0,
            "nproc": self.limits.max_processes,
        }
        program = [str(interpreter()), "-s", "-u", CODE] if self.language == "python" else ["/bin/sh", CODE]
        return [PRLIMIT, *(f"--{name}={most}" for name, most in limits.items()), "--", *program]

    def _check_folder(self) -> Excess | None:
        taken = 0
        for files, entry in enumerate(_walk(self.folder), 1):
            with contextlib.suppress(OSError):
                taken += entry.stat(follow_symlinks=False).st_blocks * 512
            if taken > self.limits.max_folder_bytes or files > self.limits.max_files:
                return Excess("folder", "its files exceeded the size limit")
        return None


def list_files(folder: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the first files by path, and the total number; links and devices are left out."""
    files: list[dict[str, Any]] = []
    for entry in _walk(folder):
        if entry.is_file(follow_symlinks=False):
            path = Path(entry.path).relative_to(folder).as_posix().encode("utf-8", "replace").decode()
            files.append({"path": path, "bytes": entry.stat(follow_symlinks=False).st_size})
    return sorted(files, key=lambda each: each["path"])[:MAX_LISTED], len(files)


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything below *folder* without following links; entries that vanish during the walk are skipped."""
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _give_to_a_user(folder: Path) -> None:
    """Make an unused user the owner of *folder*, once; the code runs as the folder's owner."""
    if folder.lstat().st_uid not in USERS:
        user = secrets.choice(USERS)
        os.chown(folder, user, user, follow_symlinks=False)


def _environment() -> dict[str, str]:
    place = str(SANDBOX)
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": place,
        "LANG": "C.UTF-8",
        "PYTHONPATH": place,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if libraries := shared_python():
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(str(path.parent) for path in libraries)
    return variables


def _exit_code(ended: Ended) -> int:
    if ended.excess is not None:
        return KILLED
    return 128 - ended.code if ended.code < 0 else ended.code
