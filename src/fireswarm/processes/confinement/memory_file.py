"""Anonymous files that hand content to a process."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


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
