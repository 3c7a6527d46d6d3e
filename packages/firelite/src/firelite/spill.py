"""Old versions of documents on the disk: files without a name, which vanish with the process that reads them."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Files are released as a whole, so this much of the disk may be used in addition.
SEGMENT_BYTES = 16 * 1024 * 1024


class Segment:
    """One file. It is closed, which deletes it, with the last content in it."""

    __slots__ = ("_descriptor", "length")

    def __init__(self, folder: Path) -> None:
        """Create the file. Raises OSError."""
        self._descriptor = -1
        self._descriptor, name = tempfile.mkstemp(dir=folder, prefix=".firelite-history-")
        self.length = 0
        Path(name).unlink()

    def append(self, content: bytes) -> Spilled:
        """Write a content at the end. Raises OSError."""
        written = os.pwrite(self._descriptor, content, self.length)
        if written < len(content):
            os.pwrite(self._descriptor, content[written:], self.length + written)  # raises the reason
        spilled = Spilled(self, self.length, len(content))
        self.length += len(content)
        return spilled

    def read(self, offset: int, length: int) -> bytes:
        """Read a content."""
        return os.pread(self._descriptor, length, offset)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Spilled:
    """A content in a file."""

    segment: Segment
    offset: int
    length: int

    def read(self) -> bytes:
        """Read the content."""
        return self.segment.read(self.offset, self.length)


class Spill:
    """Writes contents to files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment: Segment | None = None

    def append(self, content: bytes) -> Spilled | None:
        """Write a content. Returns None if that failed, such as for lack of space."""
        try:
            if self._segment is None or self._segment.length >= SEGMENT_BYTES:
                self._segment = Segment(self._folder)
            return self._segment.append(content)
        except OSError:
            return None
