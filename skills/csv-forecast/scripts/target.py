"""Choose the column to forecast, and whether it is a number or a class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .columns import Column, number_of
from .table import BadTable, Table, is_missing

USUAL_NAMES = ("target", "label", "y", "outcome", "class")
FEW_CLASSES = 10
"""Maximum number of different whole numbers (with ten rows each) that are read as classes."""

LEAST_LABELLED = 20
"""Minimum number of labelled rows for learning; below it, only the simple baseline is reported."""


@dataclass(frozen=True)
class Target:
    """The target column, its kind, and its rows: labelled ones with their answers, and open ones."""

    name: str
    task: str
    labelled: list[int]
    answers: list[float] | list[str]
    open_rows: list[int]


def choose_target(table: Table, context: dict[str, Any], answers: dict[str, Any], objective: str) -> str | None:
    """Return the target column: as given, named by the objective, or by a usual name; None if a person must choose."""
    answer = answers.get("target")
    given = answer or context.get("target")
    if given:
        matching = [name for name in table.header if name.lower() == str(given).strip().lower()]
        if not matching and not answer:
            raise BadTable(f"There is no column {given!r}. The columns are: {', '.join(table.header[:40])}.")
        return matching[0] if matching else None
    text = objective.lower()
    named = [
        name for name in table.header if len(name) > 2 and re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", text)
    ]
    if len(named) == 1:
        return named[0]
    usual = [name for name in table.header if name.lower() in USUAL_NAMES]
    return usual[0] if len(usual) == 1 else None


def read_target(table: Table, name: str, column: Column, wanted: str | None) -> Target:
    """Split the rows by whether the answer is known; raises :class:`BadTable` for an unreadable answer."""
    cells = table.column(name)
    labelled = [row for row, cell in enumerate(cells) if not is_missing(cell)]
    open_rows = [row for row, cell in enumerate(cells) if is_missing(cell)]
    if not labelled:
        raise BadTable(f"The target column {name!r} is empty in every row: there is nothing to learn from.")
    task = wanted or _task(column, [cells[row] for row in labelled])
    if task not in {"classification", "regression"}:
        raise BadTable(f"context.task is {task!r}; it must be classification or regression.")
    if task == "classification":
        return Target(name, task, labelled, [cells[row].strip() for row in labelled], open_rows)
    numbers: list[float] = []
    for row in labelled:
        value = number_of(cells[row])
        if value is None:
            line = table.line_of[row]
            place = f"{table.name} row {row + 1} (line {line}), column {name!r}"
            remedy = "Correct it, empty it, or set context.task to classification."
            raise BadTable(f"{place}: {cells[row].strip()[:40]!r} is not a number. {remedy}")
        numbers.append(value)
    return Target(name, task, labelled, numbers, open_rows)


def _task(column: Column, filled: list[str]) -> str:
    if column.kind not in {"number", "identifier", "constant"} or number_of(filled[0]) is None:
        return "classification"
    values = [number_of(cell) for cell in filled]
    whole = all(value is not None and value == int(value) for value in values)
    few = column.distinct <= FEW_CLASSES and len(filled) >= 10 * column.distinct
    return "classification" if whole and (few or column.distinct == 2) else "regression"
