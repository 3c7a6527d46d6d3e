"""Read-only mounts for bubblewrap: system programs, libraries and the Python interpreter. No user files.

`Replacements` notices that another program replaces a file or a folder on which something is mounted for a command.
When a name that is covered by a mount is removed or gets another file, the kernel takes the mount away in all other
namespaces: the command could then change a protected file, or read a denied one.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import struct
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

MAX_CONFIG_CHARS = 10_000

_BASE = re.compile(r"(?m)^home[ \t]*=[ \t]*(/[^\n]*)$")
"""Folder of the interpreter in the file ``pyvenv.cfg`` of a virtual environment."""

_SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share/zoneinfo")
_OUTER = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SINGLE = ("/etc/ld.so.cache", "/etc/alternatives")
PRIVATE_FOLDERS = (Path("/etc/ssl/private"), Path("/etc/pki/tls/private"), Path("/etc/pki/CA/private"))
"""Folders of keys within folders that are readable."""

_HIDDEN_FOLDERS = (
    *map(str, PRIVATE_FOLDERS),
    "/proc/sys",
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/scsi",
)
_HIDDEN_FILES = (
    *("/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/latency_stats", "/proc/sched_debug"),
    *("/proc/sysrq-trigger", "/proc/timer_list", "/proc/timer_stats", "/proc/mtrr", "/proc/config.gz"),
)


_EVENT = struct.Struct("=iIII")
_WATCHED = 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Names that are moved away and to, made and removed, and the end of the folder itself."""

_MAX_EVENTS_BYTES = 65_536
POLL_SECONDS = 0.1
"""Pause between two looks where the kernel gives no events: a user has a limited number of them."""


def system_mounts(*more: str) -> list[str]:
    """Return bubblewrap arguments for the readable paths: programs, libraries, the interpreter, and *more* folders."""
    paths = [*_system_paths(), *(path for path in more if not _within(path, _system_paths()))]
    parents = dict.fromkeys(str(parent) for path in paths for parent in reversed(Path(path).parents[:-1]))
    mounts: list[str] = []
    for path in parents:  # folders that bubblewrap creates implicitly are readable only by root
        mounts += ["--perms", "0755", "--dir", path]
    for path in paths:
        mounts += ["--ro-bind", path, path]
    for path in _OUTER:
        if Path(path).is_symlink():
            mounts += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            mounts += ["--ro-bind", path, path]
    return mounts


def system_places(*more: str) -> list[str]:
    """Return the readable paths: programs, libraries, the interpreter, and *more* places."""
    outer = [path for path in _OUTER if Path(path).is_dir() and not Path(path).is_symlink()]
    return list(dict.fromkeys([*_system_paths(), *outer, *(place for place in more if Path(place).exists())]))


def _within(path: str | Path, folders: Iterable[str]) -> bool:
    """Compare paths as text: is_relative_to() takes 0.1 ms, and a command needs hundreds of comparisons."""
    inner = f"{Path(path)}/"
    return any(inner.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def interpreter() -> Path:
    """Return the interpreter outside of any virtual environment."""
    return Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()


@cache
def _system_paths() -> tuple[str, ...]:
    """Return the folders of programs and libraries: the system's, and the interpreter's if they are elsewhere."""
    based = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}  # not those of a virtual environment
    own = [interpreter(), *(Path(sysconfig.get_path(name, vars=based)) for name in ("stdlib", "platstdlib"))]
    own += shared_python()
    paths = [path for path in (*_SYSTEM, *_SINGLE) if Path(path).exists()]
    for path in own:
        if not _within(path, paths):
            paths.append(str(path))
    return tuple(paths)


@cache
def shared_python() -> tuple[Path, ...]:
    """Return the interpreter's shared library as loaded in this process, if it has one; on Linux only."""
    if sys.platform != "linux":  # macOS names it in the interpreter
        return ()
    mapped = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    return tuple(Path(path) for path in sorted(mapped) if Path(path).name.startswith("libpython"))


def python_environment(folder: Path) -> list[Path]:
    """Return the folders that programs of a Python environment need: *folder*, and the Python from which it was made.

    Returns nothing for other folders, and for one that contains more than an environment: a home, or the root of the
    file system.
    """
    config = folder / "pyvenv.cfg"
    try:
        if not config.is_file():
            return [folder] if (folder / "conda-meta").is_dir() and not holds_a_home(folder) else []
        with config.open(encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_CONFIG_CHARS)
    except OSError:
        return []
    found = _BASE.search(text)
    base = Path(found[1].strip()).parent if found else folder
    whole = (base / "lib").is_dir() and any((base / "lib").glob("python3*"))
    return [place for place in (folder, *([base.resolve()] if whole else [])) if not holds_a_home(place)]


TOOLCHAINS = (
    *(".pyenv", ".rbenv", ".goenv", ".nodenv", ".asdf", ".nvm", ".volta", ".sdkman", ".rustup", ".juliaup"),
    *(".cargo/bin", ".cargo/env", ".cargo/registry", ".cargo/git", ".bun/bin", ".deno/bin", ".local/bin", "go/pkg/mod"),
    *(".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx/venvs", ".local/share/mise/installs"),
    *(".local/share/fnm", ".local/share/pnpm", "miniconda3", "miniforge3", "anaconda3"),
)
"""Places below the home of a user that hold languages and their packages, and no secrets."""

_TOOL_VARIABLES = {"PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm", "RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"}
"""Variables that name toolchains, which are otherwise searched for in the home folder of the command."""


def toolchains() -> list[Path]:
    """Return the toolchains of this user.

    The Python of an environment in a workspace is among them, or is the system's. What its ``pyvenv.cfg`` names does
    not count: a command can write that.
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() may raise
    return [place for name in TOOLCHAINS if (place := home / name).exists() and not place.is_symlink()]


def toolchain_variables(given: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the toolchains of this user, except those that are set."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() may raise
    missing = {name: home / place for name, place in _TOOL_VARIABLES.items() if name not in given}
    return {name: str(place) for name, place in missing.items() if place.is_dir()}


def holds_a_home(folder: Path) -> bool:
    """Return True for a folder that holds homes, or the home of this user."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() may raise
    return len(folder.parts) < 3 or _within(home, (str(folder),)) or folder.parent == Path("/home")


def hidden_kernel_files() -> list[str]:
    """Return bubblewrap arguments that hide private keys, kernel settings and paths that container engines hide."""
    arguments: list[str] = []
    for folder in (place for place in _HIDDEN_FOLDERS if Path(place).is_dir()):
        arguments += ["--size", "4096", "--tmpfs", folder, "--remount-ro", folder]
    for file in (place for place in _HIDDEN_FILES if Path(place).exists()):
        arguments += ["--ro-bind", "/dev/null", file]
    return arguments


class Replacements:
    """Watches *places* from now on. Call `begin` once the mounts are about to be made, and `close` at the end."""

    def __init__(self, places: Iterable[Path]) -> None:
        """Learn what is there, before it is mounted."""
        self._known = {place: identity for place in places if (identity := _identity(place))}
        self._events = _open_events({place.parent for place in self._known}) if self._known else -1
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC) if self._known else (-1, -1)
        self._thread: threading.Thread | None = None

    def begin(self, act: Callable[[Path], object]) -> None:
        """Call *act* once, in a thread, with the first place that is replaced."""
        if self._known:
            self._thread = threading.Thread(target=self._watch, args=(act,), name="replaced-places", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        if not self._known:
            return
        os.close(self._wake)
        if self._thread is not None:
            self._thread.join()
        os.close(self._woken)
        if self._events != -1:
            os.close(self._events)
        self._known = {}

    def _watch(self, act: Callable[[Path], object]) -> None:
        poll = select.poll()
        for number in (self._woken, self._events):
            if number != -1:
                poll.register(number, select.POLLIN)
        pause = None if self._events != -1 else POLL_SECONDS * 1_000
        names = {os.fsencode(place.name) for place in self._known}
        while True:
            is_named = self._events == -1
            for number, _ in poll.poll(pause):
                if number == self._woken:
                    return
                is_named = is_named or _names_one_of(names, os.read(self._events, _MAX_EVENTS_BYTES))
            if is_named and (replaced := self._first_replaced()):
                act(replaced)
                return

    def _first_replaced(self) -> Path | None:
        return next((place for place, known in self._known.items() if _identity(place) != known), None)


def _identity(place: Path) -> tuple[int, int] | None:
    """Return the device and the number of what is at *place* itself, None if nothing is."""
    try:
        status = place.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_events(folders: Iterable[Path]) -> int:
    """Return a descriptor of the kernel's events about names in *folders*; -1 if they cannot be watched."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if number != -1 and any(libc.inotify_add_watch(number, os.fsencode(each), _WATCHED) == -1 for each in folders):
        os.close(number)
        return -1
    return number


def _names_one_of(names: set[bytes], events: bytes) -> bool:
    """Return True if an event is about one of *names*, or about a folder itself, or if events were lost."""
    at = 0
    while at < len(events):
        length = _EVENT.unpack_from(events, at)[3]
        name = events[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
        if not name or name in names:
            return True
        at += _EVENT.size + length
    return False
