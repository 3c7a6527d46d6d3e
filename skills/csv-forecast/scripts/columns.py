"""Type each column, and convert the useful ones to numbers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from fireswarm import count_noun

from .table import Table, is_missing

MOSTLY = 0.95
"""Minimum share of numbers (or dates) among the filled cells of a column of that kind."""

MOST_LEVELS = 20
FEW_LEVELS = 50


@dataclass
class Column:
    """A column's kind (number, date, category, constant, identifier, empty), and notes about it."""

    name: str
    kind: str
    missing: int
    distinct: int
    notes: list[str] = field(default_factory=list[str])

    def as_json(self) -> dict[str, Any]:
        """The column as the forecast artifact describes it."""
        return {"name": self.name, "kind": self.kind, "missing": self.missing, "distinct": self.distinct}


def number_of(cell: str) -> float | None:
    """Return the finite number in a cell, or None."""
    try:
        value = float(cell.strip())
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def date_of(cell: str) -> float | None:
    """Return the days since year 1 of an ISO date or timestamp, or None."""
    text = cell.strip()
    if len(text) < 8 or not text[:4].isdigit():
        return None
    try:
        if len(text) <= 10:
            return float(date.fromisoformat(text).toordinal())
        stamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    return stamp.toordinal() + (stamp.hour * 3600 + stamp.minute * 60 + stamp.second) / 86_400


def describe(table: Table, name: str) -> Column:
    """Return the kind of a column; odd cells in a column of numbers are noted with their row."""
    cells = table.column(name)
    filled = [cell for cell in cells if not is_missing(cell)]
    distinct = len({cell.strip() for cell in filled})
    column = Column(name, "category", len(cells) - len(filled), distinct)
    if not filled:
        column.kind = "empty"
    elif distinct == 1:
        column.kind = "constant"
    elif _share(filled, number_of) >= MOSTLY:
        column.kind = "number"
        _note_odd(table, column, cells)
        if distinct == len(filled) == len(cells) and _counts_up(cells):
            column.kind = "identifier"
    elif _share(filled, date_of) >= MOSTLY:
        column.kind = "date"
    elif distinct > FEW_LEVELS and distinct > 0.5 * len(filled):
        column.kind = "identifier"
    return column


def _share(cells: list[str], parse: Any) -> float:
    return sum(parse(cell) is not None for cell in cells) / len(cells)


def _counts_up(cells: list[str]) -> bool:
    """Return True if a column is a row number: whole numbers, each one more than the last."""
    values = [number_of(cell) or 0.0 for cell in cells]
    return len(values) > 2 and all(after - before == 1 for before, after in zip(values, values[1:], strict=False))


def _note_odd(table: Table, column: Column, cells: list[str]) -> None:
    odd = [index for index, cell in enumerate(cells) if not is_missing(cell) and number_of(cell) is None]
    if odd:
        first = odd[0]
        column.notes.append(
            f"{count_noun(len(odd), 'cell')} of {column.name} without a number, first row {first + 1} "
            f"(line {table.line_of[first]}): {cells[first].strip()[:40]!r}"
        )


@dataclass
class Encoder:
    """Converts rows to numbers with medians, levels and flags for missing values from the training rows."""

    parts: list[tuple[str, str, Any]]
    names: list[str]

    @classmethod
    def fit(cls, table: Table, columns: list[Column], rows: list[int]) -> Encoder:
        """Learn medians and levels from *rows* of the feature *columns*."""
        parts: list[tuple[str, str, Any]] = []
        names: list[str] = []
        for column in columns:
            cells = table.column(column.name)
            seen = [cells[row] for row in rows]
            if column.kind in {"number", "date"}:
                parse = number_of if column.kind == "number" else date_of
                values = sorted(value for value in map(parse, seen) if value is not None)
                middle = values[len(values) // 2] if values else 0.0
                flagged = len(values) < len(seen)
                parts.append((column.name, column.kind, (middle, flagged)))
                names += [column.name, f"{column.name} missing"] if flagged else [column.name]
            else:
                counts = Counter(_level(cell) for cell in seen)
                levels = [level for level, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
                parts.append((column.name, "category", tuple(levels[:MOST_LEVELS])))
                names += [f"{column.name} = {level or 'missing'}" for level in levels[:MOST_LEVELS]]
        return cls(parts, names)

    def encode(self, table: Table, rows: list[int]) -> list[list[float]]:
        """Return rows as numbers; a level that is not in the training rows becomes all zeros."""
        blocks: list[list[list[float]]] = []
        for name, kind, learned in self.parts:
            cells = table.column(name)
            blocks.append([_encoded(cells[row], kind, learned) for row in rows])
        return [[value for block in blocks for value in block[index]] for index in range(len(rows))]


def _level(cell: str) -> str:
    return "" if is_missing(cell) else cell.strip()


def _encoded(cell: str, kind: str, learned: Any) -> list[float]:
    if kind == "category":
        level = _level(cell)
        return [float(level == known) for known in learned]
    value = number_of(cell) if kind == "number" else date_of(cell)
    middle, flagged = learned
    filled = middle if value is None else value
    return [filled, float(value is None)] if flagged else [filled]
