"""Read a file without blocking on a pipe: other kinds of files are refused after they are opened."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


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


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", str(path))
