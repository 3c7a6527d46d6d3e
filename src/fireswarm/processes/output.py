"""Bounded output of a child process."""

from __future__ import annotations

from dataclasses import dataclass, field

READ_BYTES = 65_536

TO_A_FILE = "redirect the output to a file and read that in parts"
"""Advice on how to see omitted parts of a command's output."""

TIMED_OUT = 124
"""Exit code of a command that was killed at its time limit, as in ``timeout``."""

CANNOT_START = 127
"""Exit code of a missing command, as in shells."""

KILLED = 137
"""Exit code of a killed command, as in shells."""


@dataclass(slots=True)
class OutputTail:
    """The first and the last bytes of a stream. ``advice`` explains how to see the omitted bytes between them."""

    limit: int
    advice: str = TO_A_FILE
    head: bytes = b""
    tail: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    dropped_lines: int = 0
    """Number of line ends among the dropped bytes."""

    def add(self, data: bytes) -> None:
        """Add bytes."""
        first = self.limit * 2 // 3
        room = max(0, first - len(self.head))
        self.head, data = self.head + data[:room], data[room:]
        self.tail += data
        over = max(0, len(self.tail) - (self.limit - first))
        self.dropped_lines += self.tail.count(b"\n", 0, over)
        del self.tail[:over]
        self.dropped += over

    def text(self) -> str:
        """Return the stored text.

        A note in the middle says exactly what was omitted: whole lines, if they are short.
        """
        if not self.dropped:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = self.head, bytes(self.tail)
        end, start = head.rfind(b"\n") + 1, tail.find(b"\n") + 1
        whole = end >= len(head) // 2 and 0 < start <= len(tail) // 2
        if whole:
            head, tail = head[:end], tail[start:]
        gone = self.dropped + len(self.head) - len(head) + len(self.tail) - len(tail)
        where = f"from byte {len(head) + 1:,} on"
        if whole:
            first = head.count(b"\n") + 1
            where = f"lines {first:,} to {first + self.dropped_lines:,}"
        note = f"[{gone:,} bytes omitted, {where}: {self.advice}]"
        parts = (head.decode("utf-8", "replace").removesuffix("\n"), note, tail.decode("utf-8", "replace"))
        return "\n".join(parts)
