"""The view of a confined command: programs, its workspace and an empty home.

It has no other files, processes or secrets.

The command runs in separate namespaces, as the owner of the workspace, and without capabilities. Root starts it as the
owner if that is another user; otherwise its user id is mapped to the id of this process. Kernel settings and the parts
of ``/proc`` that a container engine hides are not visible.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE
from fireswarm.contracts.skills.given_files import INPUT_VARIABLE
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import (
    NAMESPACES,
    NO_NETWORK,
    Isolation,
    Launch,
    find_bubblewrap,
    folders,
    isolate,
)
from fireswarm.processes.confinement.container import container_environment, start_without_rights
from fireswarm.processes.confinement.mounts import hidden_kernel_files, python_environment, system_mounts
from fireswarm.processes.descendants import MARK

HOME = "/home/agent"
SANDBOX = Path("/sandbox")
"""Path of the workspace in a strict view."""

USER = 1000
"""User and group id that the command sees as its own."""

OWN_FOLDER = ".fireswarm"
"""Folder of a swarm with its store and runs, which commands cannot see or change."""

TEMPORARY_BYTES = 1_000_000_000
"""Size of ``/tmp`` and of the home folder, which are in memory."""

STRICT_TEMPORARY_BYTES = 64_000_000
TRIAL_SECONDS = 60.0

PASSED_ON = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TERM", "TZ", "COLUMNS", "LINES", MARK, OUTPUT_VARIABLE, INPUT_VARIABLE}
)
"""Environment variables that a read-only command gets, in addition to those of the locale (``LC_``)."""

_CONFIGURED = (
    *("/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/localtime", "/etc/mime.types", "/etc/ld.so.conf"),
    *("/etc/ld.so.conf.d", "/etc/os-release", "/etc/protocols", "/etc/services"),
    *("/opt", "/usr/include", "/usr/local", "/usr/sbin", "/usr/share"),
)
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf")
_NOT_A_WORKSPACE = ("/proc", "/sys", "/dev", "/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin")
_PROGRAM_FOLDERS = ("bin", "sbin")


@dataclass(frozen=True, slots=True)
class View:
    """``workspace`` keeps its path and is the current folder; ``readable`` are further folders that may be read.

    They may begin with ``~``, the home folder of this process. ``outputs`` is always writable, ``inputs``
    never. In a ``container`` that
    is itself the boundary, the command is not restricted to the view, but has no privileges and finds no secrets.

    A ``strict`` view is for code that needs nothing from the machine. It shows the workspace as `SANDBOX`, has no
    network, no settings of the machine, no home, less space in ``/tmp`` and no shared memory. ``files`` are added at
    their paths.
    """

    workspace: Path
    writable: bool = False
    readable: tuple[Path, ...] = ()
    network: bool = False
    container: bool = False
    outputs: Path | None = None
    inputs: Path | None = None
    strict: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], hash=False)

    @property
    def place(self) -> Path:
        """The path of the workspace within the view."""
        return SANDBOX if self.strict else self.workspace.resolve()

    def check(self) -> None:
        """Raise SandboxRefused if a command cannot be confined to this view.

        The first call runs a program as a test.
        """
        if self.container:
            start_without_rights()
        else:
            _check_bubblewrap(self)

    @contextmanager
    def confine(self, environment: Mapping[str, str]) -> Generator[Launch]:
        """Yield the start of a command with this view, which lasts until the end of the block.

        Raises SandboxRefused.
        """
        if self.container:
            yield Launch(start_without_rights(), container_environment(read_only_environment(environment)))
            return
        owner = _check_bubblewrap(self)
        isolation = Isolation(
            rights=_rights(owner),
            mounts=_mounts(self, environment.get("PATH", "")),
            folder=self.place if owner is None else Path("/"),  # only its owner may enter a private folder
            files=self.files if self.strict else {**_user_database(owner), **self.files},
            network=self.network and not self.strict,
            start_as=_start_as(owner, self.place),
            strict=self.strict,
        )
        with isolate(isolation, _environment(self, environment)) as launch:
            yield launch


def _check_bubblewrap(view: View) -> tuple[int, int] | None:
    """Return the user and group of the command (None: those of this process).

    Raises SandboxRefused if the view cannot be enforced.
    """
    program, _ = find_bubblewrap(strict=view.strict)
    workspace = view.workspace.resolve()
    if not is_workspace(workspace):
        raise SandboxRefused(f"a command cannot be confined to {workspace}: work in another folder")
    owner = _owner(workspace)
    if reason := _reason_against(program, owner):
        raise SandboxRefused(f"bubblewrap cannot confine commands on this machine: {reason}")
    return owner


def is_workspace(folder: Path) -> bool:
    """Return False for the root of the file system and for system folders."""
    return folder != Path("/") and not any(folder.is_relative_to(place) for place in _NOT_A_WORKSPACE)


def _environment(view: View, given: Mapping[str, str]) -> dict[str, str]:
    """Return the command's environment; a read-only command gets no variables that may contain a secret."""
    if view.strict:
        return dict(given)
    passed = dict(given) if view.writable else read_only_environment(given)
    return passed | {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "TMPDIR": "/tmp"}


def read_only_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of *given* that contain no secrets."""
    return {name: value for name, value in given.items() if name in PASSED_ON or name.startswith("LC_")}


def _owner(workspace: Path) -> tuple[int, int] | None:
    """Return the user and group of the command: root acts for the owner of the workspace."""
    try:
        status = workspace.stat()
    except OSError as error:
        raise SandboxRefused(f"a command cannot be confined to {workspace}: {error.strerror}") from error
    if os.geteuid() != 0:
        return None
    return (status.st_uid, status.st_gid) if status.st_uid else None


def _user_database(owner: tuple[int, int] | None) -> dict[str, bytes]:
    """Return the user database for the command."""
    user, group = owner or (USER, USER)
    return {
        "/etc/passwd": f"root:x:0:0::/root:/bin/sh\nagent:x:{user}:{group}::{HOME}:/bin/bash\n".encode(),
        "/etc/group": f"root:x:0:\nagent:x:{group}:\n".encode(),
    }


def _rights(owner: tuple[int, int] | None) -> list[str]:
    """Return the arguments for user and privileges. Root needs no user namespace to act as another user."""
    if owner is not None:
        return ["--hostname", "sandbox", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return ["--hostname", "sandbox", "--unshare-user", "--disable-userns", "--uid", str(USER), "--gid", str(USER)]


def _start_as(owner: tuple[int, int] | None, folder: Path) -> list[str]:
    """Return the prefix that gives up the last privileges of root, enters *folder*, and starts the command."""
    if owner is None:
        return []
    words = ["/usr/bin/setpriv", f"--reuid={owner[0]}", f"--regid={owner[1]}", "--clear-groups", "--inh-caps=-all"]
    return [*words, "/usr/bin/env", f"--chdir={folder}"]


def _mounts(view: View, path: str) -> list[str]:
    """Return the arguments for all mounts. Later ones cover earlier ones."""
    size = STRICT_TEMPORARY_BYTES if view.strict else TEMPORARY_BYTES
    empty = ("--perms", "1777", "--size", str(size), "--tmpfs")
    workspace, place = view.workspace.resolve(), view.place
    arguments = ["--proc", "/proc", "--dev", "/dev", *empty, "/tmp", *(() if view.strict else (*empty, HOME))]
    arguments += system_mounts(*(() if view.strict else _readable(view, workspace, path)))
    arguments += [*folders(place), "--bind" if view.writable else "--ro-bind", str(workspace), str(place)]
    own = workspace / OWN_FOLDER
    if not view.strict and own.is_dir() and not own.is_symlink():
        arguments += ["--perms", "0755", "--size", "4096", "--tmpfs", str(own)]
        arguments += [*_task_mounts(view), "--remount-ro", str(own)]
    else:
        arguments += _task_mounts(view)
    return [*arguments, *hidden_kernel_files(), *(("--remount-ro", "/dev") if view.strict else ())]


def _task_mounts(view: View) -> list[str]:
    """Return the arguments that make the output folder writable and the input folder readable, wherever they are."""
    mounts = (("--bind", view.outputs), ("--ro-bind", view.inputs))
    return [
        word
        for option, folder in mounts
        if folder is not None
        for word in (*folders(folder), option, str(folder), str(folder))
    ]


def _readable(view: View, workspace: Path, path: str) -> list[str]:
    """Return the paths outside of the workspace that are readable."""
    named = [Path(part) for part in path.split(os.pathsep) if part.startswith("/")]
    bins = [folder.resolve() for folder in named if folder.name in _PROGRAM_FOLDERS]
    environments = (place for folder in bins for place in python_environment(folder.parent))
    programs = [sys.base_prefix, sys.prefix, *map(str, (*bins, *environments))]
    try:
        allowed = [place.expanduser().resolve() for place in view.readable]
    except RuntimeError as error:
        raise SandboxRefused(f"runtime.readable: {error}") from error
    given = (str(place) for place in allowed if not place.is_relative_to(workspace))
    places = [*_CONFIGURED, *(_NETWORK if view.network else ()), *programs, *given]
    return [place for place in dict.fromkeys(places) if Path(place).exists()]


@cache
def _reason_against(program: str, owner: tuple[int, int] | None) -> str:
    """Test *program* once, and return the reason why commands cannot be confined here, or "".

    The test runs in another session: otherwise Ctrl+C at that moment would end it, and all later commands would be
    refused.
    """
    arguments = [*NAMESPACES, *_rights(owner), *NO_NETWORK, "--proc", "/proc", *system_mounts()]
    command = [program, *arguments, "--", *_start_as(owner, Path("/")), "/bin/true"]
    try:
        tried = subprocess.run(
            command, capture_output=True, timeout=TRIAL_SECONDS, check=False, env={}, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (
        tried.stderr.decode("utf-8", "replace").strip() or f"exit code {tried.returncode}" if tried.returncode else ""
    )
