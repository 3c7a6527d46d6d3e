"""Tables: drawn on a terminal, one line of text for each row in a pipe or a file."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fireswarm.cli.shared.options import console
from fireswarm.contracts.limits import clip
from fireswarm.redaction import sanitize

LEAST_TEXT = 24
"""Characters that the last column of a table needs to be readable; with fewer, a row is drawn on several lines."""

BORDER = 3
"""Width of the border and the padding of one column."""

INDENT = 4
"""Columns before the text of a row that is drawn on several lines."""

NO_VALUE = "-"
"""An empty value in a pipe, where programs count the columns."""

Cell = str | Text


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, none: str, folded: Sequence[str] = ()
) -> None:
    """Print a table, or *none* if there are no rows. Long words are folded in the last column and in those *folded*.

    If standard output is not a terminal, each row is one line without a frame, colors or omissions, and values are
    separated by tabs; the first line has the names of the columns.
    """
    if not rows:
        console.print(none)
    elif not console.is_terminal:
        for row in (columns, *rows):
            values = (sanitize(one_line(str(value))) or NO_VALUE for value in row)
            console.file.write("\t".join(values) + "\n")  # rich would make spaces of the tabs
    elif _is_narrow(columns, rows, folded):
        console.print(title, style="italic")
        for row in rows:
            _print_record(columns, row)
    else:
        console.print(_draw(title, columns, rows, folded))


def one_line(text: str) -> str:
    """Return *text* without line breaks and tabs."""
    return " ".join(text.split())


def cell(text: str, length: int) -> str:
    """Return a text for a cell: clipped to *length* on a terminal, complete elsewhere."""
    return clip(text, length) if console.is_terminal else text


def _is_narrow(columns: Sequence[str], rows: Sequence[Sequence[Cell]], folded: Sequence[str]) -> bool:
    """Return True if the terminal has no room for all columns and a readable part of the last one."""
    widths = [max(cell_len(str(row[number])) for row in (columns, *rows)) for number in range(len(columns))]
    for number, column in enumerate(columns):
        if column in folded or number == len(columns) - 1:
            widths[number] = min(widths[number], LEAST_TEXT)
    return sum(widths) + BORDER * len(columns) + 1 > console.width


def _print_record(columns: Sequence[str], row: Sequence[Cell]) -> None:
    """Print one row: its first value, the others with the names of their columns, then its text."""
    first, *middle = row[:-1]
    parts = [Text(str(first), "bold")]
    for column, value in zip(columns[1:-1], middle, strict=True):
        if str(value):
            parts += [Text("  "), Text(f"{column} ", "dim"), value if isinstance(value, Text) else Text(value)]
    console.print(Text.assemble(*parts))
    text = row[-1]
    if str(text):
        console.print(Padding(Text(str(text), overflow="fold"), (0, 0, 0, INDENT)))


def _draw(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], folded: Sequence[str]) -> Table:
    drawn = Table(title=title, title_justify="left", header_style="bold", expand=False)
    for number, column in enumerate(columns):
        words = number >= len(columns) - 1 or column in folded
        drawn.add_column(column, no_wrap=not words, overflow="fold" if words else "ellipsis")
    for row in rows:
        drawn.add_row(*row)
    return drawn
