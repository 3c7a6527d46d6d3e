"""The whole machine read-only but for some folders, for the code of skills.

Unlike in `view`, the code may read what this process may read: skills belong to the operator. It has no sockets of
other programs, no other processes and no secrets in its environment; a network only where it is allowed one.
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
from fireswarm.processes.confinement.view import OWN_FOLDER, Launch, is_workspace, read_only_environment

_SOCKET_FOLDERS = ("/run", "/var/run")
"""Folders where other programs listen; empty for the code."""


@contextmanager
def confine_writes(
    folders: Sequence[Path], environment: Mapping[str, str], *, workspaces: Sequence[Path] = (), network: bool = False
) -> Generator[Launch]:
    """Yield how to start a command that can write to *folders* and *workspaces* only; the first folder is its home.

    What a swarm keeps in a workspace is read-only. A workspace that is the root of the file system or a part of the
    system is not writable. With *network*, the command gets *environment* as it is, else the part without secrets.
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
    prefix = [program, *_namespaces(network), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in _SOCKET_FOLDERS:
        if Path(folder).is_dir() and not Path(folder).is_symlink():
            prefix += ["--size", "4096", "--tmpfs", folder]
    if network and (names := Path("/etc/resolv.conf").resolve()).is_file() and names.is_relative_to("/run"):
        prefix += ["--ro-bind", str(names), str(names)]
    prefix += hidden_kernel_files()
    for place in dict.fromkeys(str(folder.resolve()) for folder in workspaces if is_workspace(folder.resolve())):
        prefix += ["--bind", place, place]
        if Path(place, OWN_FOLDER).is_dir() and not Path(place, OWN_FOLDER).is_symlink():
            prefix += ["--ro-bind", f"{place}/{OWN_FOLDER}", f"{place}/{OWN_FOLDER}"]
    for place in dict.fromkeys(str(folder.resolve()) for folder in folders):
        prefix += ["--bind", place, place]
    passed = dict(environment) if network else read_only_environment(environment)
    passed |= {"HOME": home, "TMPDIR": home}
    if libraries := shared_python():
        passed["LD_LIBRARY_PATH"] = os.pathsep.join(str(path.parent) for path in libraries)
    with ExitStack() as stack:
        filtering = stack.enter_context(memory_file(calls))
        yield Launch([*prefix, "--chdir", str(Path.cwd()), "--seccomp", str(filtering), "--"], passed, (filtering,))


def _namespaces(network: bool) -> list[str]:
    """Return the arguments for namespaces and rights. Root keeps the right to read the files of all users."""
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += [] if network else ["--unshare-net"]
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        return [*arguments, "--cap-add", "CAP_DAC_READ_SEARCH"]
    return [*arguments, "--unshare-user", "--disable-userns"]
