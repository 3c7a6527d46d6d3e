"""The lines of a terminal as they look in the end, from what a command printed: moves within a line are carried out."""

from __future__ import annotations

import re
from itertools import groupby

_PIECES = re.compile(r"\x1b\[([0-9;?]*)[ -/]*([@-~])|\x1b[()][0-9A-B]|\x1b[=>]|\r\n|[\r\n\b]|[^\x1b\r\n\b]+")
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def settle(printed: str) -> str:
    """Return the lines with their colors. Only moves of the cursor along its line are known."""
    lines: list[str] = []
    cells: list[tuple[str, str]] = []
    column, style = 0, ""
    for piece in _PIECES.finditer(printed):
        number, kind, text = piece[1], piece[2], piece[0]
        if kind == "C":
            column += int(number or 1)
        elif kind == "D":
            column = max(0, column - int(number or 1))
        elif kind in ("J", "K"):
            del cells[column:]
        elif kind == "m":
            style = style + text if number.strip("0") else ""
        elif text == "\b":
            column = max(0, column - 1)
        elif text == "\r":
            column = 0
        elif text in ("\n", "\r\n"):
            lines.append(_line(cells))
            cells, column = [], 0
        elif text[0] != "\x1b":
            cells += [("", " ")] * (column - len(cells))
            cells[column : column + len(text)] = [(style, char) for char in text]
            column += len(text)
    return "\n".join([*lines, _line(cells + [("", " ")] * (column - len(cells)))])


def plain(printed: str) -> str:
    """Return the lines without colors."""
    return _COLORS.sub("", settle(printed))


def _line(cells: list[tuple[str, str]]) -> str:
    runs = [(style, "".join(char for _, char in run)) for style, run in groupby(cells, key=lambda cell: cell[0])]
    return "".join(f"{style}{text}\x1b[0m" if style else text for style, text in runs)
