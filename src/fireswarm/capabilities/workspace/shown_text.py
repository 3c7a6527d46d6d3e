r"""Find and replace passages of a file's text as a model sees it: without control characters, with \n at line ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from fireswarm.redaction import HIDDEN

_LINE_END = re.compile(r"\r\n?|\n")
_CHANGED = re.compile(rf"(?P<end>\r\n?)|{HIDDEN.pattern}")


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text as editors and grep count them: only \n, \r\n and \r end one."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def line_end_of(text: str) -> str:
    """Return what most lines of a text end with."""
    both = text.count("\r\n")
    ends = {"\n": text.count("\n") - both, "\r\n": both, "\r": text.count("\r") - both}
    return max(ends, key=lambda end: ends[end])


def count_hidden(text: str) -> int:
    """Return the number of control characters and escape sequences that are not shown, without the ends of lines."""
    return sum(match["end"] is None for match in _CHANGED.finditer(text))


def find_passage(text: str, passage: str) -> list[tuple[int, int]]:
    """Return where *passage*, which is not empty, is in *text*, as starts and ends: exactly, or else as it is shown."""
    if not passage:
        raise ValueError("an empty passage is everywhere")
    spans = _find(text, passage)
    if spans or not _CHANGED.search(text):
        return spans
    shown = _Shown.of(text)
    return [(shown.place(start)[0], shown.place(end - 1)[1]) for start, end in _find(shown.text, passage)]


def replace_passage(text: str, spans: list[tuple[int, int]], new: str) -> str:
    r"""Return the text with *new* at all *spans*, which follow each other.

    Ends of lines in *new* become those of the text, unless it has \r itself or takes the place of a \n.
    """
    if "\r" not in new:
        local = "".join(text[start:end] for start, end in spans)
        new = new.replace("\n", line_end_of(local if _LINE_END.search(local) else text))
    parts: list[str] = []
    after = 0
    for start, end in spans:
        parts += [text[after:start], new]
        after = end
    return "".join([*parts, text[after:]])


def _find(text: str, passage: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = text.find(passage)
    while start >= 0:
        spans.append((start, start + len(passage)))
        start = text.find(passage, start + len(passage))
    return spans


@dataclass(frozen=True, slots=True)
class _Shown:
    """A text as it is shown. ``starts`` are the positions in it where a piece begins, ``origins`` where that was.

    The ``widths`` are the lengths of what a character of each piece was: 1, or that of the end of a line.
    """

    text: str
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> _Shown:
        pieces: list[tuple[str, int, int]] = []
        after = 0
        for match in _CHANGED.finditer(text):
            pieces.append((text[after : match.start()], after, 1))
            if match["end"] is not None:
                pieces.append(("\n", match.start(), len(match[0])))
            after = match.end()
        parts, origins, widths = zip(*pieces, (text[after:], after, 1), strict=True)
        starts = accumulate(map(len, parts[:-1]), initial=0)
        return cls("".join(parts), tuple(starts), origins, widths)

    def place(self, shown: int) -> tuple[int, int]:
        """Return where in the file's text a character is that is shown, as start and end."""
        number = bisect_right(self.starts, shown) - 1
        start = self.origins[number] + shown - self.starts[number]
        return start, start + self.widths[number]
