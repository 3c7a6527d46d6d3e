"""The newest output of a command that is still running."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from fireswarm.processes.output import TO_A_FILE

UNFINISHED_BYTES = 4_000
"""Maximum length of an unfinished last line that is held back, since half a line may be half a secret."""


@dataclass(slots=True)
class RecentOutput:
    """The last ``limit`` bytes of a stream, written by one thread and read by another.

    ``read_to`` is the number of bytes that were read or dropped.
    """

    limit: int
    total: int = 0
    read_to: int = 0
    _line_end: int = 0
    """Number of bytes up to the end of the last complete line."""

    _kept: bytearray = field(default_factory=bytearray)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, data: bytes) -> None:
        """Add bytes; the oldest ones are dropped."""
        with self._changed:
            self._kept += data
            del self._kept[: max(0, len(self._kept) - self.limit)]
            self.total += len(data)
            if (end := data.rfind(b"\n") + 1) or self.total - self._line_end > UNFINISHED_BYTES:
                self._line_end = self.total - (len(data) - end if end else 0)
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake those that wait in `wait_for_more`."""
        with self._changed:
            self._changed.notify_all()

    def wait_for_more(self, seconds: float, has_ended: threading.Event) -> None:
        """Wait until there is a new line to read, the command has ended, or *seconds* have passed. Blocks."""
        with self._changed:
            self._changed.wait_for(lambda: self._line_end > self.read_to or has_ended.is_set(), timeout=seconds)

    def take(self, *, ended: bool) -> str:
        """Return the new output, with a note on dropped bytes.

        Until the command has *ended*, an unfinished last line is shown, and shown again when it is complete.
        """
        with self._changed:
            first = self.total - len(self._kept)
            dropped = max(0, first - self.read_to)
            new = bytes(self._kept[max(0, self.read_to - first) :])
            self.read_to = self.total if ended else max(self.read_to, self._line_end)
        gap = f"[{dropped:,} bytes were dropped: read sooner, or {TO_A_FILE}]\n" if dropped else ""
        return gap + new.decode("utf-8", "replace")
