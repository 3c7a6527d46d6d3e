"""Strict reading of a CSV file: every error names the row and the column."""

from __future__ import annotations

import csv
import errno
import io
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fireswarm import count_noun, read_regular_file

MAX_BYTES = 50_000_000
MAX_ROWS = 200_000
SNIFF_BYTES = 100_000
MAX_COLUMNS = 500

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "missing", "unknown"})
"""Texts for a missing value, in any case and with spaces around them."""


class BadTable(Exception):
    """The file is not a usable table; the message names row and column and the correction."""


@dataclass(frozen=True)
class Table:
    """A header and rows of text, each as long as the header; row 1 is the first after the header."""

    name: str
    header: tuple[str, ...]
    rows: list[list[str]]
    line_of: list[int]

    def column(self, name: str) -> list[str]:
        """The cells of one column."""
        position = self.header.index(name)
        return [row[position] for row in self.rows]


def is_missing(cell: str) -> bool:
    """Return True if a cell has no value."""
    return cell.strip().lower() in MISSING


def table_at(given: str) -> tuple[Table, Path | None]:
    """Read the table in *given*: a path, a ``file://`` URI, or text with a line break."""
    if "\n" in given:
        return parse_table(given, "inline CSV"), None
    if given.startswith("file://"):
        given = unquote(urlsplit(given).path)
    path = Path(os.path.realpath(Path(given).expanduser()))
    if path.is_dir():
        raise BadTable(f"{given} is a folder. Give the absolute path of the CSV file in it as context.path.")
    try:
        raw = read_regular_file(path, MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise BadTable(f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB. Give a sample of it.") from None
        reason = error.strerror or "unreadable"
        raise BadTable(
            f"{given} cannot be read ({reason}). Give the absolute path of a CSV file as context.path."
        ) from None
    return parse_table(_decoded(raw, path.name), path.name), path


def _decoded(raw: bytes, name: str) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    if b"\0" in raw[:SNIFF_BYTES]:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise BadTable(f"{name} line {line} has a zero byte: this is not a text file. Export it as CSV (UTF-8).")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def parse_table(text: str, name: str) -> Table:
    """Parse CSV text; the delimiter is comma, semicolon, tab or bar, whichever the header uses most."""
    first = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(",;\t|", key=lambda mark: (first.count(mark), -",;\t|".index(mark)))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: tuple[str, ...] = ()
    rows: list[list[str]] = []
    line_of: list[int] = []
    try:
        for fields in reader:
            if not fields or (len(fields) == 1 and not fields[0].strip() and len(header) != 1):
                continue
            if not header:
                header = _header(fields, name)
                continue
            if len(fields) != len(header):
                raise BadTable(_ragged(fields, header, name, len(rows) + 1, reader.line_num))
            rows.append(fields)
            line_of.append(reader.line_num)
            if len(rows) > MAX_ROWS:
                raise BadTable(f"{name} has more than {MAX_ROWS:,} rows. Give a sample of it.")
    except csv.Error as error:
        raise BadTable(f"{name} line {reader.line_num} is not valid CSV ({error}). Check its quotes.") from None
    if not header:
        raise BadTable(f"{name} is empty. Give a CSV file with a header line and rows.")
    if not rows:
        raise BadTable(f"{name} has a header but no rows.")
    return Table(name, header, rows, line_of)


def _header(fields: list[str], name: str) -> tuple[str, ...]:
    header = tuple(field.strip() for field in fields)
    if len(header) > MAX_COLUMNS:
        raise BadTable(f"{name} has {count_noun(len(header), 'column')}; {MAX_COLUMNS:,} are allowed.")
    for number, field in enumerate(header, start=1):
        if not field:
            raise BadTable(f"{name}: column {number} has no name in the header line. Name it or remove it.")
        if header.index(field) != number - 1:
            first = header.index(field) + 1
            raise BadTable(f"{name}: columns {first} and {number} are both called {field!r}. Rename one of them.")
    return header


def _ragged(fields: list[str], header: tuple[str, ...], name: str, row: int, line: int) -> str:
    if len(fields) < len(header):
        place = f"column {header[len(fields)]!r} and the following ones are missing"
    else:
        place = f"there are more values after the last column {header[-1]!r}"
    return (
        f"{name} row {row} (line {line}) has {count_noun(len(fields), 'field')}, the header has {len(header)}: {place}."
    )
