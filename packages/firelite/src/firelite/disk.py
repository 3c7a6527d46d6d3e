"""Find out if a disk is full: SQLite reports most failures for lack of space as ``disk I/O error``."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

# More than SQLite's shared index of the log (32 KiB), which it creates on opening, and a few pages.
PROBE_BYTES = 128 * 1024


def means_full(error: OSError) -> bool:
    """Return True if the error is that of a full disk, or of an exhausted quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_full(folder: Path) -> bool:
    """Return True if the folder's disk has no space for a small file."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return means_full(error)
    return False
