"""The whole machine read-only, for code of skills in a task that is ``read_only``.

Unlike in `view`, the code may read what this process may read: skills belong to the operator. It can write to the given
folders only. It has no network, no sockets of other programs, no other processes and no secrets in its environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from platform import machine
from shutil import which

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.memory_file import memory_file
from fireswarm.processes.confinement.mounts import hidden_kernel_files, shared_python
from fireswarm.processes.confinement.seccomp import call_filter
from fireswarm.processes.confinement.view import Launch, read_only_environment

_SOCKET_FOLDERS = ("/run", "/var/run")
"""Folders where other programs listen; empty for the code."""


@contextmanager
def confine_writes(folders: Sequence[Path], environment: Mapping[str, str]) -> Generator[Launch]:
    """Yield how to start a command that can write to *folders* only; the first one is its home.

    Its current folder is that of this process, so that relative paths mean the same.
    Raises SandboxRefused on a machine without bubblewrap. If the kernel forbids it, the command does not start, and
    bubblewrap says why on standard error.
    """
    program, calls = which("bwrap"), call_filter(machine(), strict=False, local_sockets=False)
    if sys.platform != "linux" or calls is None:
        raise SandboxRefused(f"code cannot be confined on {sys.platform} {machine()}")
    if program is None:
        raise SandboxRefused("bubblewrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)")
    home = str(folders[0].resolve())
    prefix = [program, *_namespaces(), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in _SOCKET_FOLDERS:
        if Path(folder).is_dir() and not Path(folder).is_symlink():
            prefix += ["--size", "4096", "--tmpfs", folder]
    prefix += hidden_kernel_files()
    for place in dict.fromkeys(str(folder.resolve()) for folder in folders):
        prefix += ["--bind", place, place]
    passed = read_only_environment(environment) | {"HOME": home, "TMPDIR": home}
    if libraries := shared_python():
        passed["LD_LIBRARY_PATH"] = os.pathsep.join(str(path.parent) for path in libraries)
    with ExitStack() as stack:
        filtering = stack.enter_context(memory_file(calls))
        yield Launch([*prefix, "--chdir", str(Path.cwd()), "--seccomp", str(filtering), "--"], passed, (filtering,))


def _namespaces() -> list[str]:
    """Return the arguments for namespaces and rights. Root keeps the right to read the files of all users."""
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"]
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        return [*arguments, "--cap-add", "CAP_DAC_READ_SEARCH"]
    return [*arguments, "--unshare-user", "--disable-userns"]
