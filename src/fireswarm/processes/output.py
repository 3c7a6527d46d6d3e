"""Bounded output of a child process."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import anyio.abc

READ_BYTES = 65_536

TIMED_OUT = 124
"""Exit code of a command that was ended after its time, as ``timeout`` uses it."""

CANNOT_START = 127
"""Exit code of a command that does not exist, as shells use it."""

KILLED = 137
"""Exit code of a command that was killed, as shells give it."""


@dataclass(slots=True)
class OutputTail:
    """The first and the last bytes of a stream."""

    limit: int
    head: bytes = b""
    tail: bytes = b""
    dropped: int = 0

    def add(self, data: bytes) -> None:
        """Add bytes."""
        room = max(0, self.limit * 2 // 3 - len(self.head))
        self.head, data = self.head + data[:room], data[room:]
        self.tail += data
        over = max(0, len(self.tail) - self.limit // 3)
        self.tail, self.dropped = self.tail[over:], self.dropped + over

    def text(self) -> str:
        """Return the kept text with a note of the number of dropped bytes."""
        gap = f"\n[{self.dropped:,} bytes left out]\n".encode() if self.dropped else b""
        return (self.head + gap + self.tail).decode("utf-8", "replace")


async def drain(stream: anyio.abc.ByteReceiveStream | None, kept: OutputTail) -> None:
    """Read a stream to its end, even if only part of it is kept."""
    if stream is None:
        return
    try:
        while True:
            kept.add(await stream.receive(READ_BYTES))
    except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return
