"""The view of a confined command: programs, its workspace and an empty home.

It has no other files, processes or secrets.

The command runs in separate namespaces, as the owner of the workspace, and without capabilities. Root starts it as the
owner if that is another user; otherwise its user id is mapped to the id of this process. Kernel settings and the parts
of ``/proc`` that a container engine hides are not visible.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE
from fireswarm.contracts.skills.given_files import INPUT_VARIABLE
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import (
    USER,
    Isolation,
    Launch,
    folders,
    isolate,
    start_as,
    user_rights,
)
from fireswarm.processes.confinement.container import container_environment, start_without_rights
from fireswarm.processes.confinement.ladder import BY_PATHS, Rung, choose_rung
from fireswarm.processes.confinement.mounts import (
    PRIVATE_FOLDERS,
    hidden_kernel_files,
    python_environment,
    system_mounts,
    system_places,
    toolchain_variables,
    toolchains,
)
from fireswarm.processes.confinement.paths.late_names import LateNames
from fireswarm.processes.confinement.paths.names import CALLERS_PATH
from fireswarm.processes.confinement.paths.rules import PathRules
from fireswarm.processes.confinement.protected import (
    changeable,
    everything_but,
    hidden_places,
    hide,
    kept_mounts,
    linked_places,
    outermost,
    pin_parents,
)
from fireswarm.processes.descendants import MARK, last_mark

HOME = "/home/agent"
GIT_FILE = "/etc/gitconfig-of-this-user"
"""Path for settings of git with the name and the address of the user, see `git.git_identity`."""

SANDBOX = Path("/sandbox")
"""Path of the workspace in a strict view."""

READ_ALL = 1 << 2
"""CAP_DAC_READ_SEARCH: the privilege to read the files of all users, within what Landlock allows."""

TEMPORARY_BYTES = 1_000_000_000
"""Size of ``/tmp`` and of the home folder, which are in memory."""

STRICT_TEMPORARY_BYTES = 64_000_000

NAMED = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TZ", "COLUMNS", "LINES"),
        *(MARK, CALLERS_PATH, OUTPUT_VARIABLE, INPUT_VARIABLE),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"),
        *("PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "UV_PYTHON_INSTALL_DIR"),
        *("NVM_DIR", "NVM_BIN", "NODE_ENV", "VOLTA_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"),
        *("GOPATH", "GOROOT", "JAVA_HOME", "GEM_HOME", "GEM_PATH", "RBENV_ROOT", "ASDF_DATA_DIR", "DOTNET_ROOT"),
        *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "PKG_CONFIG_PATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SOURCE_DATE_EPOCH", "CI"),
    }
)
"""Environment variables that code of foreign origin gets, in addition to those of the locale (``LC_``)."""

_AT_START = ("LD_", "DYLD_", "GLIBC_", "GCONV_", "LOCPATH", "MALLOC_", "BASH_", "ENV", "SHELLOPTS", "PS4", "PYTHONHOME")
"""Beginnings of the names of variables that run code at the start of a program, or change its memory."""

_CONFIGURED = (
    *("/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/localtime", "/etc/mime.types", "/etc/ld.so.conf"),
    *("/etc/ld.so.conf.d", "/etc/os-release", "/etc/protocols", "/etc/services", "/etc/gitconfig"),
    *("/etc/bash.bashrc", "/etc/profile", "/etc/profile.d", "/etc/inputrc", "/etc/login.defs", "/etc/shells"),
    *("/opt", "/usr/include", "/usr/local", "/usr/sbin", "/usr/share"),
)
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf")
_ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
"""Files that a command reads where it has none of its own."""

_NOT_A_WORKSPACE = ("/proc", "/sys", "/dev", "/usr", "/etc", "/bin", "/lib", "/lib64", "/sbin")
_PROGRAM_FOLDERS = ("bin", "sbin")


@dataclass(frozen=True, slots=True)
class View:
    """``workspace`` keeps its path and is the current folder; ``readable`` are further folders that may be read.

    They may begin with ``~``, the home folder of this process. If it does not ``follow`` links, these folders are
    absolute paths, and one of which a part has become a link is refused. ``outputs`` is always writable, ``inputs``
    never.
    ``passes`` are names of environment variables besides `NAMED`. ``confinement`` is the operator's setting: in a
    ``container`` that is itself the boundary, the command is not restricted to the view, but has no privileges and
    finds no secrets. Without ``protects``, the workspace is a folder of ours in which nothing is protected.

    ``hidden`` files and folders of the workspace are empty, or cannot be opened.

    A ``strict`` view is for code that needs nothing from the machine. It shows the workspace as `SANDBOX`, has no
    network, no settings of the machine, no home, less space in ``/tmp`` and no shared memory. ``files`` are added at
    their paths.
    """

    workspace: Path
    writable: bool = False
    readable: tuple[Path, ...] = ()
    network: bool = False
    confinement: str = "auto"
    outputs: Path | None = None
    inputs: Path | None = None
    protects: bool = True
    passes: tuple[str, ...] = ()
    strict: bool = False
    hidden: tuple[Path, ...] = ()
    follow: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], hash=False)

    @property
    def place(self) -> Path:
        """The path of the workspace within the view."""
        return SANDBOX if self.strict else self.workspace.resolve()

    def check(self) -> None:
        """Raise SandboxRefused if a command cannot be confined to this view.

        The first call runs a program as a test.
        """
        if self.confinement == "container":
            start_without_rights()
        else:
            self._check_owner()

    @contextmanager
    def confine(self, environment: Mapping[str, str]) -> Generator[Launch]:
        """Yield the start of a command with this view, which lasts until the end of the block.

        Raises SandboxRefused.
        """
        if self.confinement == "container":
            yield Launch(start_without_rights(), container_environment(named_environment(environment)))
            return
        owner = self._check_owner()
        rung = choose_rung(self.confinement, owner)
        changes = self.writable and self.protects and not self.strict and rung != "seatbelt"
        with ExitStack() as stack:
            # They come first: what they note is in the folder that the view hides.
            late = LateNames([self.workspace.resolve()] if changes else [], last_mark(environment))
            stack.callback(late.set_aside)
            launch = stack.enter_context(self._confine_by(rung, owner, environment))
            stack.callback(lambda: launch.set_aside.extend(late.set_aside()))
            yield launch

    def _confine_by(
        self, rung: Rung, owner: tuple[int, int] | None, environment: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        passed, path = environment_for(self, environment), environment.get("PATH", "")
        if confine_by_paths := BY_PATHS.get(rung):
            return confine_by_paths(path_rules_of(self, owner, path), passed)
        isolation = Isolation(
            rights=user_rights(owner),
            mounts=_mounts(self, path),
            held=[each for each in (self.workspace, self.outputs, self.inputs, *_find_held(self)) if each is not None],
            folder=self.place if owner is None else Path("/"),  # only its owner may enter a private folder
            files=self.files if self.strict else {**_user_database(owner), **self.files},
            network=self.network and not self.strict,
            start_as=start_as(owner, self.place),
            strict=self.strict,
        )
        return isolate(isolation, passed)

    def _check_owner(self) -> tuple[int, int] | None:
        """Return the user and group of the command (None: those of this process).

        Raises SandboxRefused if the view cannot be enforced.
        """
        workspace = self.workspace.resolve()
        for place in (self.workspace, self.outputs, self.inputs):
            if place is not None and place.is_absolute() and place.resolve() != place:
                raise SandboxRefused(f"{place} is a link to another place now: a command is not confined to that")
        if not is_workspace(workspace):
            raise SandboxRefused(f"a command cannot be confined to {workspace}: work in another folder")
        owner = _owner(workspace)
        choose_rung(self.confinement, owner)
        return owner


def is_workspace(folder: Path) -> bool:
    """Return False for the root of the file system and for system folders."""
    return folder != Path("/") and not any(folder.is_relative_to(place) for place in _NOT_A_WORKSPACE)


def environment_for(view: View, given: Mapping[str, str]) -> dict[str, str]:
    """Return the command's environment. A read-only command gets none of the variables that ``passes`` names."""
    if view.strict:
        return dict(given)
    named = named_environment(given, view.passes if view.writable else ())
    named |= toolchain_variables(named)
    if GIT_FILE in view.files:
        named["GIT_CONFIG_SYSTEM"] = GIT_FILE
    return named | {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "TMPDIR": "/tmp"}


def named_environment(given: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that code of foreign origin gets in every profile: `NAMED`, and those in *passed*.

    Programs that confine the code start with the same variables. So none is passed on that lets the loader or a shell
    run other code at its start.
    """
    return {
        name: value
        for name, value in given.items()
        if (name in NAMED or name in passed or name.startswith("LC_")) and not name.startswith(_AT_START)
    }


def _owner(workspace: Path) -> tuple[int, int] | None:
    """Return the user and group of the command: root acts for the owner of the workspace."""
    try:
        status = workspace.stat()
    except OSError as error:
        raise SandboxRefused(f"a command cannot be confined to {workspace}: {error.strerror}") from error
    if os.geteuid() != 0:
        return None
    return (status.st_uid, status.st_gid) if status.st_uid else None


def _is_reachable(folder: Path, owner: tuple[int, int]) -> bool:
    """Return True if a user and group may pass through all folders above *folder*."""
    for above in folder.parents:
        known = above.stat()
        passes = 0o100 if known.st_uid == owner[0] else 0o010 if known.st_gid == owner[1] else 0o001
        if not known.st_mode & passes:
            return False
    return True


def _user_database(owner: tuple[int, int] | None) -> dict[str, bytes]:
    """Return the user database for the command."""
    user, group = owner or (USER, USER)
    return {
        "/etc/passwd": f"root:x:0:0::/root:/bin/sh\nagent:x:{user}:{group}::{HOME}:/bin/bash\n".encode(),
        "/etc/group": f"root:x:0:\nagent:x:{group}:\n".encode(),
    }


def _mounts(view: View, path: str) -> list[str]:
    """Return the arguments for all mounts. Later ones cover earlier ones."""
    size = STRICT_TEMPORARY_BYTES if view.strict else TEMPORARY_BYTES
    empty = ("--perms", "1777", "--size", str(size), "--tmpfs")
    workspace, place = view.workspace.resolve(), view.place
    arguments = ["--proc", "/proc", "--dev", "/dev", *empty, "/tmp", *(() if view.strict else (*empty, HOME))]
    arguments += system_mounts(*(() if view.strict else _readable(view, workspace, path)))
    arguments += [*folders(place), "--bind" if view.writable else "--ro-bind", str(workspace), str(place)]
    if view.writable and view.protects and not view.strict:
        arguments += kept_mounts(workspace)
    hidden = [] if view.strict else _hidden(view, workspace)
    arguments += [*(pin_parents(workspace, hidden) if view.writable else []), *hide(hidden), *_task_mounts(view)]
    arguments += [word for place in hidden if place.is_dir() for word in ("--remount-ro", str(place))]
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
    given = (str(place) for place in _allowed_folders(view) if not place.is_relative_to(workspace))
    outer = outside_of(path, [workspace, *(place for place in (view.outputs, view.inputs) if place is not None)])
    places = [*machine_places(outer, network=view.network), *map(str, toolchains()), *given]
    return [place for place in dict.fromkeys(places) if Path(place).exists()]


def outside_of(path: str, places: Iterable[Path]) -> str:
    """Return the folders of a PATH that are not in one of *places*: code there could put a link in their place."""
    inner = tuple(f"{str(place).rstrip('/')}/" for place in places)
    listed = [folder for folder in path.split(os.pathsep) if folder.startswith("/")]
    spelled = ((folder, (os.path.normpath(folder), os.path.realpath(folder))) for folder in listed)
    return os.pathsep.join(folder for folder, both in spelled if not any(f"{each}/".startswith(inner) for each in both))


def machine_places(path: str, *, network: bool = False, accounts: bool = False) -> list[str]:
    """Return what code can read of the machine besides the system's programs: settings, and programs on *path*."""
    named = [Path(part) for part in path.split(os.pathsep) if part.startswith("/")]
    bins = [folder.resolve() for folder in named if folder.name in _PROGRAM_FOLDERS]
    environments = (place for folder in bins for place in python_environment(folder.parent))
    programs = [sys.base_prefix, sys.prefix, *map(str, (*bins, *environments))]
    return [*_CONFIGURED, *(_NETWORK if network else ()), *(_ACCOUNTS if accounts else ()), *programs]


def _hidden(view: View, workspace: Path) -> list[Path]:
    """Return what the command does not see of the workspace and of the readable folders."""
    own = [place for place in (view.outputs, view.inputs) if place is not None]
    found = [place for folder in (workspace, *_allowed_folders(view)) for place in hidden_places(folder)]
    found += [place for place in view.hidden if os.path.lexists(place) and not place.is_symlink()]
    return [place for place in outermost(found) if place not in own]


def _find_held(view: View) -> list[Path]:
    """Return the readable folders of which no part may have become a link."""
    return [] if view.follow else list(view.readable)


def _allowed_folders(view: View) -> list[Path]:
    """Return the folders that the operator or a skill allows to be read."""
    if not view.follow:
        return _find_held(view)
    try:
        return [place.expanduser().resolve() for place in view.readable]
    except RuntimeError as error:
        raise SandboxRefused(f"runtime.readable: {error}") from error


def path_rules_of(view: View, owner: tuple[int, int] | None, path: str) -> PathRules:
    """Return the paths of the view. What is readable includes what is writable."""
    workspace = view.workspace.resolve()
    more = () if view.strict else (*_ACCOUNTS, *_readable(view, workspace, path))
    writable, hidden = [], [] if view.strict else _hidden(view, workspace)
    unseen = (*PRIVATE_FOLDERS, *hidden)
    readable = everything_but(map(Path, system_places(*more)), unseen)
    if view.strict or not view.protects:
        (writable if view.writable else readable).extend(everything_but([workspace], view.hidden))
    else:
        readable += everything_but([workspace], hidden)
        if view.writable:
            writable += changeable(workspace, hidden)
    keeps = any(place.is_relative_to(workspace) for place in hidden)
    return PathRules(
        folder=workspace,
        readable=[*readable, *([view.inputs] if view.inputs else [])],
        writable=[*writable, *([view.outputs] if view.outputs else [])],
        listed=[] if keeps else [workspace],
        workspace=workspace if (view.writable or keeps) and view.protects and not view.strict else None,
        changes=view.writable,
        watches_reading=keeps,
        hidden=hidden,
        held=_find_held(view),
        kept=linked_places(workspace) if view.writable and view.protects and not view.strict else (),
        capabilities=READ_ALL if owner is not None and not _is_reachable(workspace, owner) else 0,
        network=view.network and not view.strict,
        strict=view.strict,
        owner=owner,
        files=view.files,
        places={str(SANDBOX): workspace} if view.strict else {},
    )
