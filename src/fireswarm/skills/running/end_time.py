"""The end of a call, as the child process sees it: its parent extends it, and the child ends itself when it has passed.

A parent that hangs cannot end its child, and another worker may have its task by then.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fireswarm.processes.messages import END, steady_seconds

STOOD_STILL_SECONDS = 2.0
"""Longest pause between two checks of a child that runs; after a longer one it stood still, and so did its parent."""


class Checked(NamedTuple):
    """What the last check of a child found: its time, and when the child last went on after a standstill."""

    at: float
    went_on_at: float


def has_passed(path: str, last: Checked) -> tuple[bool, Checked]:
    """Return True if the end in the file *path* has passed and no parent that stood still may extend it; and the check.

    An unreadable file has no end.
    """
    at = steady_seconds()
    checked = Checked(at, at if at - last.at > STOOD_STILL_SECONDS else last.went_on_at)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            end, grace = END.unpack(file.read(END.size))
    except (OSError, struct.error):
        return False, checked
    return at > end and at > checked.went_on_at + grace, checked
