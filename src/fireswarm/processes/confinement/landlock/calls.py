"""Answer system calls of a confined command: changes of modes and times, and of names at the top of its workspace.

Landlock limits what a process opens, makes and removes, but not who changes the mode and the times of a file. It also
cannot allow new names in a folder without allowing changes of all that the folder holds, such as ``.git/hooks``. The
filter of system calls therefore passes these calls to the launcher. It leaves to the kernel what the rules of Landlock
decide, and does itself what they cannot allow, on files that the command may change.

The command cannot exchange a file in between: the launcher opens it, checks the place of what it has opened, and works
on that.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct

from fireswarm.processes.confinement.landlock.memory import (
    CURRENT_FOLDER,
    EMPTY_PATH,
    NOFOLLOW,
    Caller,
    link_to,
    place_of,
)
from fireswarm.processes.confinement.paths.names import is_protected

TYPE_CHECKING = False
if TYPE_CHECKING:  # every import makes the start of every command slower
    from collections.abc import Callable

ON_FILES: dict[str, tuple[int, int]] = {
    # name: number on x86_64, on aarch64 (-1: it has none)
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "lchown": (94, -1), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
}  # fmt: skip
"""Calls that change a file's mode, owner or times: passed on for every command."""

ON_NAMES: dict[str, tuple[int, int]] = {
    "creat": (85, -1), "mkdir": (83, -1), "mkdirat": (258, 34), "mknod": (133, -1), "mknodat": (259, 33),
    "rename": (82, -1), "renameat": (264, 38), "renameat2": (316, 276), "link": (86, -1), "linkat": (265, 37),
    "symlink": (88, -1), "symlinkat": (266, 36), "unlink": (87, -1), "unlinkat": (263, 35), "rmdir": (84, -1),
    "truncate": (76, 45),
}  # fmt: skip
"""Calls that make, move and remove names: passed on for commands that may change a workspace."""

OPENS: dict[str, tuple[int, int]] = {"open": (2, -1), "openat": (257, 56)}
"""Calls that open files: passed on if they can change or make a file."""

OPEN_FLAGS = {"open": 1, "openat": 2}
"""The argument that holds the flags."""

CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_RECEIVE, _SEND, _IS_VALID, _GIVE = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1
_MODES = 0o1777
"""Bits of a mode that are set: a program that runs as its owner would give other users his rights."""

_CALL = struct.Struct("=QIIiIQ6Q")
_REMOVE_FOLDER, _FOLLOW = 0x200, 0x400

_libc = ctypes.CDLL(None, use_errno=True)


class LeftToKernel(Exception):
    """The rules of Landlock decide on the call."""


class Name:
    """A name in a folder that is open inside of the block: ``folder``, its own ``text``, and its whole ``path``."""

    def __init__(self, calls: PassedOnCalls, folder: int, address: int) -> None:
        """Open the folder of the name that a call means. Leaves special names to the kernel."""
        path = calls.caller.text(address).rstrip("/")
        above, _, self.text = path.rpartition("/")
        if self.text in ("", ".", ".."):
            raise LeftToKernel
        self.folder = calls.caller.open(folder, above or ("/" if path.startswith("/") else "."))
        try:
            calls.check_caller()
            self.place = place_of(self.folder)
        except OSError:
            os.close(self.folder)
            raise
        self.path = f"{self.place.rstrip('/')}/{self.text}"

    def __enter__(self) -> Name:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)


class PassedOnCalls:
    """Answers the calls that arrive at ``listener``.

    The command may change what is in ``writable``, by the rules of Landlock. If it ``changes`` its ``workspace``, it
    may also change other names there that are neither protected, nor ``kept``, nor ``hidden``; otherwise it reads them.
    """

    def __init__(
        self, writable: list[str], workspace: str | None, changes: bool, hidden: list[str], kept: list[str]
    ) -> None:
        self.listener = -1
        self.caller = Caller(0)
        self._writable = writable
        self._workspace = workspace
        self._changes = changes
        self._hidden = hidden
        self._kept = kept
        self._number = 0

    def answer(self) -> None:
        """Receive one call and answer it."""
        asked = bytearray(_CALL.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, asked)
        except OSError:  # the caller has ended
            return
        self._number, pid, _, call, _, _, *values = _CALL.unpack(asked)
        self.caller = Caller(pid)
        result, failed, left = 0, 0, 0
        try:
            result = self._do(_NAMES[call], values) or 0
        except LeftToKernel:
            left = _CONTINUE
        except OSError as error:
            failed = error.errno or errno.EPERM
        except (ValueError, OverflowError, struct.error):  # an address or a value that no program means
            failed = errno.EINVAL
        try:
            fcntl.ioctl(self.listener, _SEND, bytearray(struct.pack("=QqiI", self._number, result, -failed, left)))
        except OSError:  # the caller has ended
            return

    def _do(self, name: str, values: list[int]) -> int | None:
        if name in ON_FILES:
            return self._change(name, values)
        return _DOES[name](self, [_as_signed(value) for value in values], values)

    def check_caller(self) -> None:
        """Raise OSError if the process has ended: another one may have its number."""
        fcntl.ioctl(self.listener, _IS_VALID, bytearray(struct.pack("=Q", self._number)))

    def _covers(self, path: str) -> bool:
        """Return True if the rules of Landlock let the command change what is at *path*."""
        return any(path == place or path.startswith(f"{place}/") for place in self._writable)

    def _is_in_workspace(self, path: str) -> bool:
        """Return True for a place in the workspace that is not hidden."""
        if self._workspace is None or not path.startswith(f"{self._workspace}/"):
            return False
        return not any(path == place or path.startswith(f"{place}/") for place in self._hidden)

    def _is_kept(self, path: str) -> bool:
        """Return True for a path in the workspace that only a person changes, or that the command does not see."""
        if any(path == place or path.startswith(f"{place}/") for place in (*self._hidden, *self._kept)):
            return True
        return is_protected(tuple(path.removeprefix(f"{self._workspace}/").split("/")))

    def _check(self, path: str) -> None:
        """Raise PermissionError unless the command may change what is at *path*."""
        if self._covers(path):
            return
        if self._changes and self._is_in_workspace(path) and not self._is_kept(path):
            return
        raise PermissionError(errno.EACCES, "it is not writable in this view")

    def _leave(self, *folders: str) -> None:
        """Leave the call to the kernel if it is about no name at the top of the workspace, and no new folder there."""
        if not any(folder == self._workspace or self._is_in_workspace(folder) for folder in folders):
            raise LeftToKernel
        if all(self._covers(folder) for folder in folders):
            raise LeftToKernel

    def _change(self, name: str, values: list[int]) -> None:
        """Change the mode or the times of a file. Its owner stays."""
        folder, path, flags = _target(name, values)
        text = self.caller.text(path)
        times = self.caller.times(name, values[2 if "at" in name else 1]) if "utim" in name else None
        opened = self.caller.open(folder, text, flags)
        try:
            self.check_caller()
            self._check(place_of(opened))
            if "chmod" in name:
                os.chmod(link_to(opened), values[1 if name in ("chmod", "fchmod") else 2] & _MODES)
            elif "chown" in name:
                _check_unchanged(link_to(opened), values[2:4] if name == "fchownat" else values[1:3])
            elif _libc.utimensat(CURRENT_FOLDER, link_to(opened).encode(), times, 0):
                raise OSError(ctypes.get_errno(), "the times cannot be set")
        finally:
            os.close(opened)

    def open(self, folder: int, address: int, flags: int, mode: int) -> int:
        """Open a file for the caller; returns its descriptor there."""
        exclusive = flags & os.O_CREAT and flags & os.O_EXCL
        wanted = NOFOLLOW if exclusive or flags & os.O_NOFOLLOW else 0
        try:
            found = self.caller.open(folder, self.caller.text(address), wanted)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            return self._make(folder, address, flags, mode)
        try:
            self.check_caller()
            path, kind = place_of(found), os.fstat(found).st_mode
            own = path == self._workspace and not flags & CHANGING
            if (
                not (own or self._is_in_workspace(path))
                or self._covers(path)
                or not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))
            ):
                raise LeftToKernel
            if exclusive:
                raise FileExistsError(errno.EEXIST, "it exists")
            if flags & CHANGING:
                self._check(path)
            elif not own and self._is_kept(path):
                raise LeftToKernel
            opened = os.open(link_to(found), flags & ~(os.O_CREAT | os.O_NOFOLLOW) | os.O_CLOEXEC)
        finally:
            os.close(found)
        return self._give(opened, flags)

    def _make(self, folder: int, address: int, flags: int, mode: int) -> int:
        with Name(self, folder, address) as name:
            self._leave(name.place)
            self._check(name.path)
            wanted = flags | os.O_NOFOLLOW | os.O_EXCL | os.O_CLOEXEC
            opened = os.open(name.text, wanted, mode & _MODES & ~self.caller.mask, dir_fd=name.folder)
        return self._give(opened, flags)

    def _give(self, opened: int, flags: int) -> int:
        """Give an open file to the caller; returns its descriptor there."""
        kept = flags & os.O_CLOEXEC
        try:
            given = bytearray(struct.pack("=Q4I", self._number, 0, opened, 0, kept))
            return fcntl.ioctl(self.listener, _GIVE, given)
        finally:
            os.close(opened)

    def make(self, folder: int, address: int, make: Callable[[Name, int], object], mode: int = 0o777) -> None:
        """Make a name with *make*, which gets it and the mode without the bits of the caller's mask."""
        with Name(self, folder, address) as name:
            self._leave(name.place)
            self._check(name.path)
            make(name, mode & _MODES & ~self.caller.mask)

    def remove(self, folder: int, address: int, flags: int) -> None:
        """Remove a file, or an empty folder."""
        with Name(self, folder, address) as name:
            self._leave(name.place)
            self._check(name.path)
            (os.rmdir if flags & _REMOVE_FOLDER else os.unlink)(name.text, dir_fd=name.folder)

    def move(self, old: tuple[int, int], new: tuple[int, int], flags: int = 0) -> None:
        """Give a file or a folder another name."""
        with Name(self, *old) as first, Name(self, *new) as second:
            self._leave(first.place, second.place)
            self._check(first.path)
            self._check(second.path)
            if any(place.startswith((f"{first.path}/", f"{second.path}/")) for place in (*self._hidden, *self._kept)):
                raise PermissionError(errno.EACCES, "what is hidden or protected in it would be found elsewhere")
            names = (os.fsencode(first.text), second.folder, os.fsencode(second.text))
            if _libc.renameat2(first.folder, names[0], names[1], names[2], ctypes.c_uint(flags)):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))

    def link(self, old: tuple[int, int], new: tuple[int, int], flags: int = 0) -> None:
        """Give a file a further name."""
        source = self.caller.open(*_path_of(self.caller, old), 0 if flags & _FOLLOW else NOFOLLOW)
        try:
            with Name(self, *new) as name:
                self.check_caller()
                path = place_of(source)
                self._leave(os.path.dirname(path), name.place)
                self._check(path)
                self._check(name.path)
                os.link(link_to(source), name.text, dst_dir_fd=name.folder, follow_symlinks=True)
        finally:
            os.close(source)

    def truncate(self, address: int, size: int) -> None:
        """Change the size of a file: by this program in all cases, since an older Landlock does not limit it."""
        found = self.caller.open(CURRENT_FOLDER, self.caller.text(address))
        try:
            self.check_caller()
            self._check(place_of(found))
            os.truncate(link_to(found), size)
        finally:
            os.close(found)


def _path_of(caller: Caller, place: tuple[int, int]) -> tuple[int, str]:
    return place[0], caller.text(place[1])


def _node(mode: int) -> Callable[[Name, int], object]:
    """Return what makes a file or a pipe; other kinds are denied."""
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFIFO):
        raise PermissionError(errno.EPERM, "no devices and no sockets")
    return lambda name, kept: os.mknod(name.text, stat.S_IFMT(mode) | kept, dir_fd=name.folder)


def _mkdir(name: Name, mode: int) -> None:
    os.mkdir(name.text, mode, dir_fd=name.folder)


def _symlink(calls: PassedOnCalls, target: int) -> Callable[[Name, int], object]:
    text = calls.caller.text(target)
    return lambda name, _: os.symlink(text, name.text, dir_fd=name.folder)


_HERE = CURRENT_FOLDER
_NEW = os.O_CREAT | os.O_WRONLY | os.O_TRUNC

_DOES: dict[str, Callable[[PassedOnCalls, list[int], list[int]], int | None]] = {
    # what a call does with its arguments: descriptors have a sign, addresses have none
    "open": lambda it, s, a: it.open(_HERE, a[0], s[1], s[2]),
    "openat": lambda it, s, a: it.open(s[0], a[1], s[2], s[3]),
    "creat": lambda it, s, a: it.open(_HERE, a[0], _NEW, s[1]),
    "mkdir": lambda it, s, a: it.make(_HERE, a[0], _mkdir, s[1]),
    "mkdirat": lambda it, s, a: it.make(s[0], a[1], _mkdir, s[2]),
    "mknod": lambda it, s, a: it.make(_HERE, a[0], _node(s[1]), s[1]),
    "mknodat": lambda it, s, a: it.make(s[0], a[1], _node(s[2]), s[2]),
    "symlink": lambda it, s, a: it.make(_HERE, a[1], _symlink(it, a[0])),
    "symlinkat": lambda it, s, a: it.make(s[1], a[2], _symlink(it, a[0])),
    "unlink": lambda it, s, a: it.remove(_HERE, a[0], 0),
    "rmdir": lambda it, s, a: it.remove(_HERE, a[0], _REMOVE_FOLDER),
    "unlinkat": lambda it, s, a: it.remove(s[0], a[1], s[2]),
    "rename": lambda it, s, a: it.move((_HERE, a[0]), (_HERE, a[1])),
    "renameat": lambda it, s, a: it.move((s[0], a[1]), (s[2], a[3])),
    "renameat2": lambda it, s, a: it.move((s[0], a[1]), (s[2], a[3]), s[4]),
    "link": lambda it, s, a: it.link((_HERE, a[0]), (_HERE, a[1])),
    "linkat": lambda it, s, a: it.link((s[0], a[1]), (s[2], a[3]), s[4]),
    "truncate": lambda it, s, a: it.truncate(a[0], a[1]),
}

_COLUMN = 0 if os.uname().machine == "x86_64" else 1
_NAMES = {numbers[_COLUMN]: name for name, numbers in {**ON_FILES, **ON_NAMES, **OPENS}.items()}


def _target(name: str, values: list[int]) -> tuple[int, int, int]:
    """Return the descriptor from which a call starts, the address of its path (0: none), and its flags."""
    first, second, fourth, fifth = (
        _as_signed(values[0]),
        values[1],
        _as_signed(values[3]),
        _as_signed(values[4]),
    )
    match name:
        case "fchmod" | "fchown":
            return first, 0, EMPTY_PATH
        case "fchmodat":
            return first, second, 0
        case "fchmodat2":
            return first, second, fourth
        case "fchownat":
            return first, second, fifth
        case "utimensat" | "futimesat":
            return first, second, (fourth if name == "utimensat" else 0) if second else EMPTY_PATH
        case _:
            return CURRENT_FOLDER, values[0], NOFOLLOW if name == "lchown" else 0


def _check_unchanged(link: str, owner: list[int]) -> None:
    """Raise PermissionError unless *owner*, a user and a group, is that of the file, as it is when files are copied."""
    known = os.stat(link)
    if _as_signed(owner[0]) not in (-1, known.st_uid) or _as_signed(owner[1]) not in (-1, known.st_gid):
        raise PermissionError(errno.EPERM, "files keep their owner")


def _as_signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
