"""The process whose system call is being answered: its memory, its open files and its current folder."""

from __future__ import annotations

import errno
import os
import struct

CURRENT_FOLDER = -100
NOFOLLOW, EMPTY_PATH = 0x100, 0x1000
_MAX_PATH = 4_096
_TIMES = struct.Struct("=4q")


class Caller:
    """The process with the number ``pid``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def read(self, address: int, size: int) -> bytes:
        """Return at most *size* bytes of its memory."""
        memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(memory, size, address)
        finally:
            os.close(memory)

    def text(self, address: int) -> str:
        """Return the text that ends with a zero byte; "" for no address."""
        return os.fsdecode(self.read(address, _MAX_PATH).partition(b"\0")[0]) if address else ""

    def times(self, name: str, address: int) -> bytes | None:
        """Return the two times of the call *name* in seconds and nanoseconds; None for the time of the call."""
        if not address:
            return None
        if name == "utimensat":
            return _TIMES.pack(*_TIMES.unpack(self.read(address, _TIMES.size)))
        if name == "utime":
            first, second = struct.unpack("=2q", self.read(address, 16))
            return _TIMES.pack(first, 0, second, 0)
        first, first_micro, second, second_micro = _TIMES.unpack(self.read(address, _TIMES.size))
        return _TIMES.pack(first, first_micro * 1_000, second, second_micro * 1_000)

    @property
    def mask(self) -> int:
        """The bits that a new file of it does not have."""
        with open(f"/proc/{self.pid}/status", "rb") as file:
            _, _, rest = file.read(_MAX_PATH).partition(b"Umask:")
        return int(rest.split()[0], 8) if rest else 0o077

    def open(self, folder: int, path: str, flags: int = 0) -> int:
        """Open what *path* means to it, from the folder of that descriptor of it, without the right to read."""
        start = f"/proc/{self.pid}/cwd" if folder == CURRENT_FOLDER else f"/proc/{self.pid}/fd/{folder}"
        if not path:
            if not flags & EMPTY_PATH:
                raise FileNotFoundError(errno.ENOENT, "no path")
            return os.open(start, os.O_PATH | os.O_CLOEXEC)
        for own in ("/proc/self/", "/proc/thread-self/"):
            if path.startswith(own):
                path = f"/proc/{self.pid}/{path.removeprefix(own)}"
        mode = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & NOFOLLOW else 0)
        if path.startswith("/"):
            return os.open(path, mode)
        opened = os.open(start, os.O_PATH | os.O_CLOEXEC)
        try:
            return os.open(path, mode, dir_fd=opened)
        finally:
            os.close(opened)


def place_of(opened: int) -> str:
    """Return where an open file is."""
    return os.readlink(link_to(opened))


def link_to(opened: int) -> str:
    """Return a path that leads to an open file, wherever it is."""
    return f"/proc/self/fd/{opened}"
