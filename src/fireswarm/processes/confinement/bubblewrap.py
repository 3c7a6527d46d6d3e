"""The command line of bubblewrap for every view: namespaces, mounts, no privileges, and a system call filter."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from platform import machine
from shutil import which

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.seccomp import call_filter

MAX_REPORT_BYTES = 65_536
NAMESPACES = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
NO_NETWORK = ("--unshare-net",)


@dataclass(frozen=True, slots=True)
class Launch:
    """The start of a confined command: the arguments before it, and the environment and descriptors of the process.

    ``report`` is the file in which bubblewrap records the start and the end of the command.
    """

    prefix: list[str]
    environment: dict[str, str]
    pass_fds: tuple[int, ...] = ()
    report: int | None = None

    def has_failed(self) -> bool:
        """Return True if bubblewrap ended without starting the command."""
        return self.report is not None and b'"exit-code"' not in os.pread(self.report, MAX_REPORT_BYTES, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The environment of a command: bubblewrap arguments for its ``rights`` and ``mounts``, and further ``files``.

    ``folder`` is its current folder; ``network`` is True if it has a network. The words ``start_as`` precede it. For
    ``strict`` and ``local_sockets`` see `call_filter`.
    """

    rights: Sequence[str]
    mounts: Sequence[str]
    folder: Path
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    network: bool = False
    start_as: Sequence[str] = ()
    strict: bool = False
    local_sockets: bool = True


@contextmanager
def isolate(isolation: Isolation, environment: dict[str, str]) -> Generator[Launch]:
    """Yield the start of a command with *isolation*, which lasts until the end of the block.

    Raises SandboxRefused without bubblewrap.
    """
    program, calls = find_bubblewrap(strict=isolation.strict, local_sockets=isolation.local_sockets)
    with ExitStack() as stack:
        numbers = [stack.enter_context(memory_file(content)) for content in (calls, b"", *isolation.files.values())]
        filtering, report, *files = numbers
        words = [program, *NAMESPACES, *isolation.rights, *(() if isolation.network else NO_NETWORK), *isolation.mounts]
        for place, number in zip(isolation.files, files, strict=True):
            words += [*folders(Path(place)), "--perms", "0444", "--ro-bind-data", str(number), place]
        words += ["--remount-ro", "/", "--chdir", str(isolation.folder)]
        words += ["--seccomp", str(filtering), "--json-status-fd", str(report), "--", *isolation.start_as]
        yield Launch(words, environment, tuple(numbers), report)


def find_bubblewrap(*, strict: bool = False, local_sockets: bool = True) -> tuple[str, bytes]:
    """Return the path of bubblewrap and the filter of system calls. Raises SandboxRefused if there is none."""
    program, calls = which("bwrap"), call_filter(machine(), strict=strict, local_sockets=local_sockets)
    if sys.platform != "linux" or calls is None:
        raise SandboxRefused(f"code cannot be confined on {sys.platform} {machine()}")
    if program is None:
        raise SandboxRefused("bubblewrap is not installed: `apt-get install bubblewrap` (Debian, Ubuntu)")
    return program, calls


def folders(place: Path) -> list[str]:
    """Return the arguments that create the folders above *place*.

    Folders that bubblewrap creates implicitly are readable only by root.
    """
    return [word for parent in place.parents[-2::-1] for word in ("--perms", "0755", "--dir", str(parent))]


@contextmanager
def memory_file(content: bytes) -> Generator[int]:
    """Open an anonymous file with *content* and yield its descriptor, at its beginning."""
    number = os.memfd_create("sandbox", os.MFD_CLOEXEC)
    try:
        with open(number, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(number, 0, os.SEEK_SET)
        yield number
    finally:
        os.close(number)
