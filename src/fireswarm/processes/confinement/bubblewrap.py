"""Sandbox with bubblewrap: separate namespaces, read-only system libraries, one writable folder.

As root, no user namespace is needed, and the program runs under an otherwise unused user id; without root it runs
in a user namespace. If bubblewrap is missing or the kernel does not allow it, the code is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shutil import which

import anyio
import anyio.abc
import anyio.to_thread
import psutil

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.skills.sandbox import SandboxEnd, SandboxLimits, SandboxRun
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.processes.confinement import sandbox_entry
from fireswarm.processes.confinement.memory_file import memory_file
from fireswarm.processes.confinement.mounts import interpreter, shared_python, system_mounts
from fireswarm.processes.confinement.seccomp import call_filter
from fireswarm.processes.output import OutputTail, drain

LOOK_SECONDS = 0.1
"""Interval of the checks of memory and folder. Short, since usage between two checks is not limited."""

GONE_SECONDS = 5.0
MAX_OPEN_FILES = 256
TEMPORARY_BYTES = 64_000_000
USERS = range(61_184, 65_520)
"""User ids that systemd reserves for transient users; no files belong to them."""

LANGUAGES = ("python", "shell")
_INSTALL = "install it (Debian, Ubuntu: apt-get install bubblewrap), or remove the capability sandbox"


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Implementation of the port ``Sandbox``. ``program`` is searched along PATH."""

    program: str = "bwrap"

    async def run(self, language: str, code: str, folder: Path, limits: SandboxLimits, stdin: str = "") -> SandboxRun:
        """Run *code* in *folder*; all its processes end with the call. Raises SandboxRefused if there is no sandbox."""
        if language not in LANGUAGES:
            raise InvalidInput(f"unsupported language {language!r}: use {' or '.join(LANGUAGES)}")
        program = which(self.program)
        calls = call_filter(platform.machine(), strict=True)
        if sys.platform != "linux" or calls is None:
            raise SandboxRefused(
                f"the sandbox does not support {sys.platform} {platform.machine()}: it needs Linux on x86-64 or ARM64"
            )
        if program is None:
            raise SandboxRefused(f"the sandbox needs {self.program}, which is not installed: {_INSTALL}")
        user = _user_of(folder) if os.geteuid() == 0 else 0
        with contextlib.ExitStack() as stack:
            status = stack.enter_context(memory_file(b""))
            handed = {
                name: stack.enter_context(memory_file(content))
                for name, content in (("calls", calls), ("entry", _entry()), ("code", code.encode()))
            }
            stdin_fd = stack.enter_context(memory_file(stdin.encode()))
            argv = [program, *_arguments(folder, user, handed, status), *_command(language, limits, user)]
            watched = _Watched(folder, limits)
            began = time.monotonic()
            code_left, out, err = await watched.run(argv, (status, *handed.values()), stdin_fd)
            os.lseek(status, 0, os.SEEK_SET)
            report = os.read(status, 65_536)
        if watched.ended is None and (b'"exit-code"' not in report or err.startswith(sandbox_entry.MARK)):
            reason = truncate(err.removeprefix(sandbox_entry.MARK).strip(), MAX_DETAIL_CHARS) or "no error message"
            raise SandboxRefused(f"{self.program} cannot create a sandbox on this machine: {reason}")
        return SandboxRun(
            exit_code=code_left,
            stdout=out,
            stderr=err,
            seconds=round(time.monotonic() - began, 3),
            ended=watched.ended,
        )


def _user_of(folder: Path) -> int:
    """Return the user id for *folder*; the first run makes it the owner."""
    owner = folder.lstat().st_uid
    if owner in USERS:
        return owner
    user = secrets.choice(USERS)
    os.chown(folder, user, user, follow_symlinks=False)
    return user


@dataclass(slots=True)
class _Watched:
    """One run, ended when it exceeds a limit."""

    folder: Path
    limits: SandboxLimits
    ended: SandboxEnd | None = None
    _seen: dict[int, psutil.Process] = field(default_factory=dict[int, psutil.Process])

    async def run(self, argv: list[str], keep: tuple[int, ...], stdin: int) -> tuple[int, str, str]:
        """Run *argv* within the limits; returns exit code, stdout and stderr."""
        try:
            process = await anyio.open_process(
                argv, stdin=stdin, env={}, pass_fds=keep, start_new_session=True, cwd="/", stderr=subprocess.PIPE
            )
        except OSError as error:
            raise SandboxRefused(f"cannot start {argv[0]}: {error.strerror}") from error
        out, err = OutputTail(self.limits.max_output_bytes), OutputTail(self.limits.max_output_bytes)
        try:
            with anyio.move_on_after(self.limits.timeout_seconds) as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch, process.pid, scope)
                    async with anyio.create_task_group() as reading:
                        reading.start_soon(drain, process.stdout, out)
                        reading.start_soon(drain, process.stderr, err)
                        await process.wait()
                    tasks.cancel_scope.cancel()
            if scope.cancelled_caught and self.ended is None:
                self.ended = SandboxEnd.TIMEOUT
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._kill, process)
                await process.wait()
                await process.aclose()
        code = process.returncode or 0
        return (128 - code if code < 0 else code), out.text(), err.text()

    async def _watch(self, pid: int, scope: anyio.CancelScope) -> None:
        while self.ended is None:
            self.ended = await anyio.to_thread.run_sync(self._too_much, pid)
            if self.ended is None:
                await anyio.sleep(LOOK_SECONDS)
        scope.cancel()

    def _too_much(self, pid: int) -> SandboxEnd | None:
        """Return the limit that the processes or the folder exceed, if any."""
        memory = 0
        for process in _below(pid):
            self._seen[process.pid] = process
            with contextlib.suppress(psutil.Error):
                memory += process.memory_info().rss
        if memory > self.limits.memory_bytes:
            return SandboxEnd.MEMORY
        taken = 0
        for files, entry in enumerate(walk(self.folder), 1):
            with contextlib.suppress(OSError):
                taken += entry.stat(follow_symlinks=False).st_blocks * 512
            if taken > self.limits.max_folder_bytes or files > self.limits.max_files:
                return SandboxEnd.FOLDER
        return None

    def _kill(self, process: anyio.abc.Process) -> None:
        """Kill bubblewrap. Its first child is the sandbox's init, so the kernel ends all processes in the sandbox."""
        left = {each.pid: each for each in [*self._seen.values(), *_below(process.pid)]}
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for each in left.values():
            with contextlib.suppress(psutil.Error):
                each.kill()
        until = time.monotonic() + GONE_SECONDS
        while any(_lives(each) for each in left.values()) and time.monotonic() < until:
            time.sleep(0.005)


def _lives(process: psutil.Process) -> bool:
    """Return False also for a zombie, which no longer runs."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything below *folder* without following links; entries that vanish meanwhile are skipped."""
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _arguments(folder: Path, user: int, handed: dict[str, int], status: int) -> list[str]:
    """Return bubblewrap's command line, up to the command to run."""
    names = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if user:
        rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        rights = ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    data = ["--perms", "0444", "--ro-bind-data"]
    return [
        *(*names, *rights, "--hostname", "sandbox", "--die-with-parent", "--new-session", "--clearenv"),
        *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", sandbox_entry.WORK, "--setenv", "LANG", "C.UTF-8"),
        *("--setenv", "PYTHONPATH", sandbox_entry.WORK, "--setenv", "PYTHONDONTWRITEBYTECODE", "1"),
        *[part for path in shared_python() for part in ("--setenv", "LD_LIBRARY_PATH", str(path.parent))],
        *("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"),
        *("--perms", "0755", "--dir", "/run", *system_mounts()),
        *("--bind", str(folder), sandbox_entry.WORK),
        *(*data, str(handed["entry"]), "/run/entry.py", *data, str(handed["code"]), "/run/main"),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--seccomp", str(handed["calls"]), "--json-status-fd", str(status), "--"),
    ]


def _command(language: str, limits: SandboxLimits, user: int) -> list[str]:
    """Return the command inside the sandbox: the entry program with its limits, then the interpreter."""
    arguments = {
        "uid": user,
        "cpu_seconds": limits.cpu_seconds,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.max_folder_bytes,
        "open_files": MAX_OPEN_FILES,
        "processes": limits.max_processes,
    }
    python = str(interpreter())
    program = [python, "-s", "-u", "/run/main"] if language == "python" else ["/bin/sh", "/run/main"]
    return [python, "-I", "-S", "/run/entry.py", json.dumps(arguments), *program]


@cache
def _entry() -> bytes:
    return Path(sandbox_entry.__file__).read_bytes()
