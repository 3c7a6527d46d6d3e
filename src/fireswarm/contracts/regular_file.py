"""Open files in places that others can change: no pipe blocks, and links lead nowhere."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
_APPEND = _WRITE | os.O_APPEND


def read_regular_file(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """Return the content of a file of at most *limit* bytes; without *follow*, the path may not be a link.

    Raises OSError, with EFBIG for a larger file, and EINVAL for a pipe, a socket, a device or a folder.
    """
    try:
        number = os.open(path, _OPEN if follow else _OPEN | _NO_LINK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(path) from None
        raise
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode):
        os.close(number)
        raise _not_regular(path)
    with os.fdopen(number, "rb") as file:
        content = b"" if state.st_size > limit else file.read(limit + 1)
    if state.st_size > limit or len(content) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return content


def open_place(path: Path) -> int:
    """Return a descriptor of the file or folder at an absolute path of which no part is a link. Linux only.

    Raises OSError, with ELOOP for a link.
    """
    number = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path.parts[1:]:
        try:
            below = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=number)
        finally:
            os.close(number)
        number = below
        if stat.S_ISLNK(os.fstat(number).st_mode):
            os.close(number)
            raise OSError(errno.ELOOP, "a link has taken its place", str(path))
    return number


def read_without_links(path: Path, limit: int | None = None) -> bytes:
    """Return the content of the file of at most *limit* bytes at an absolute path of which no part is a link.

    Raises OSError as `read_regular_file` does, with ELOOP for a link.
    """
    if sys.platform != "linux":
        if path.resolve() != path:
            raise OSError(errno.ELOOP, "a part of the path is a link", str(path))
        return read_regular_file(path, path.stat().st_size if limit is None else limit, follow=False)
    number = open_place(path)
    try:
        return read_regular_file(Path(f"/proc/self/fd/{number}"), os.fstat(number).st_size if limit is None else limit)
    finally:
        os.close(number)


def append_without_links(top: Path, parts: Sequence[str]) -> BinaryIO:
    """Open the file *parts* below the folder *top* to append to it; missing folders and the file are made.

    Only the user can read and write a new file. Raises OSError if one of the parts is a link, or something else than a
    folder or a file.
    """
    return os.fdopen(_open_below(top, parts, _APPEND, 0o600), "ab")


def write_without_links(top: Path, parts: Sequence[str], content: bytes) -> None:
    """Write the file *parts* below the folder *top*; missing folders are made. Raises OSError as for appending."""
    with os.fdopen(_open_below(top, parts, _WRITE, 0o666), "wb") as file:
        file.truncate()
        file.write(content)


def _open_below(top: Path, parts: Sequence[str], flags: int, mode: int) -> int:
    if os.open not in os.supports_dir_fd:  # Windows
        place = top.joinpath(*parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        return os.open(place, flags | getattr(os, "O_BINARY", 0), mode)
    folder = os.open(top, _FOLDER)
    try:
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            below = os.open(part, _FOLDER | _NO_LINK, dir_fd=folder)
            os.close(folder)
            folder = below
        number = os.open(parts[-1], flags | _NO_LINK, mode, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _not_regular(top.joinpath(*parts))
    return number


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", str(path))
