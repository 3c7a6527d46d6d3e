"""The time at which a child process has to end by itself, in a file that its parent extends.

A parent that hangs cannot end its child, and another worker may have its task by then. The file is read-only for a
confined child. The clock counts the time that the machine was suspended.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self

_FORMAT = struct.Struct("<dd")
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

STOOD_STILL_SECONDS = 2.0
"""Longest pause between two checks of a child that runs; after a longer one it stood still, and so did its parent."""


def now() -> float:
    """Seconds of a clock that all processes of the machine share and nobody sets."""
    return time.clock_gettime(_STEADY)


class Hold(NamedTuple):
    """The right to work that has to be renewed: by it, a child process knows when it has to end.

    ``seconds_left`` returns the seconds in which work may start, or raises LeaseLost. ``followers`` are called at each
    renewal with the seconds until the next one is due. After a standstill, a renewal may take ``grace`` seconds.
    """

    seconds_left: Callable[[], Awaitable[float]]
    followers: list[Callable[[float], object]]
    grace: float


class EndTime:
    """The end of one call. ``path`` is its file; leaving the block removes it."""

    def __init__(self, seconds: float, grace: float) -> None:
        """Set the end in *seconds*. After a standstill, the parent has *grace* seconds to extend it."""
        self._grace = grace
        self._file, self.path = tempfile.mkstemp(prefix="fireswarm-end-")
        self.extend(seconds)

    def extend(self, seconds: float) -> None:
        """Set the end to *seconds* from now."""
        os.pwrite(self._file, _FORMAT.pack(now() + seconds, self._grace), 0)

    def __enter__(self) -> Self:
        """Return the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        os.close(self._file)
        with contextlib.suppress(OSError):
            os.unlink(self.path)  # noqa: PTH108 - child processes import this module, and pathlib is slow


class Checked(NamedTuple):
    """What the last check of a child found: its time, and when the child last went on after a standstill."""

    at: float
    went_on_at: float


def has_passed(path: str, last: Checked) -> tuple[bool, Checked]:
    """Return True if the end in the file *path* has passed and no parent that stood still may extend it; and the check.

    An unreadable file has no end.
    """
    at = now()
    checked = Checked(at, at if at - last.at > STOOD_STILL_SECONDS else last.went_on_at)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            end, grace = _FORMAT.unpack(file.read(_FORMAT.size))
    except (OSError, struct.error):
        return False, checked
    return at > end and at > checked.went_on_at + grace, checked
