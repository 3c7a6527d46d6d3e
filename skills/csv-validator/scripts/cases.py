"""Cases of the tests: a row of the sample with one fault, and what the validator has to find in it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from . import validator

NO_VALUE_OF_A_TYPE = "???"
UNLIKELY = ("~", "~0~", "0", "A", "aa", "-")
"""Values of which one does not match most patterns, and is in no list."""


def make_cases(contract: Mapping[str, Any], rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return the cases of all rules, each with the CSV text, and the code, column and line that must be found."""
    header, first = list(rows[0]), list(rows[1]) if len(rows) > 1 else []
    made = (
        [_case("extra column", "extra_column", "~new~", 1, [[*header, "~new~"]])]
        if not contract["extra_columns"]
        else []
    )
    for column in contract["columns"]:
        name = column["name"]
        if name not in header:
            continue
        place = header.index(name)
        if not column["optional"] and len(header) > 1:
            made.append(_case("missing", "missing_column", name, 1, [[*header[:place], *header[place + 1 :]]]))
        if not first:
            continue
        for code, value in _faults(column, contract, first[place]):
            made.append(_case(code, code, name, 2, [header, [*first[:place], value, *first[place + 1 :]]]))
        if column["unique"] and first[place] not in contract["null_values"]:
            made.append(_case("duplicate", "duplicate", name, 3, [header, first, first]))
    if first and len(header) > 1:
        made.append(_case("a value too few", "row_length", "", 2, [header, first[:-1]]))
    return made


def _case(told: str, code: str, column: str, line: int, rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    named = f"{told}: {column}" if column else told
    return {"name": named, "csv": write_rows(rows), "code": code, "column": column, "line": line}


def write_rows(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as CSV text with commas."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _faults(column: Mapping[str, Any], contract: Mapping[str, Any], given: str) -> Iterator[tuple[str, str]]:
    """Yield values that break one rule of a column, by the code of the rule. *given* is a value that keeps all."""
    if column["required"]:
        yield "null", contract["null_values"][0] if contract["null_values"] else ""
    if column["type"] != "text":
        if NO_VALUE_OF_A_TYPE not in contract["null_values"]:
            yield "type", NO_VALUE_OF_A_TYPE
    elif column["values"] and (value := _first_unlike(column["values"], contract)) is not None:
        yield "enumeration", value
    if column["pattern"] and column["type"] == "text":
        pattern = re.compile(column["pattern"])
        unlike = [value for value in UNLIKELY if not pattern.fullmatch(value) and value not in contract["null_values"]]
        if unlike:
            yield "pattern", unlike[0]
    if column["minimum"] and (value := _moved(column["minimum"], -1, column, contract)):
        yield "range", value
    if column["maximum"] and (value := _moved(column["maximum"], 1, column, contract)):
        yield "range", value


def _first_unlike(values: Sequence[str], contract: Mapping[str, Any]) -> str | None:
    return next((each for each in UNLIKELY if each not in values and each not in contract["null_values"]), None)


def _moved(bound: str, by: int, column: Mapping[str, Any], contract: Mapping[str, Any]) -> str:
    """Return the value next to a bound, on its outside, or "" if there is none."""
    try:
        parsed = validator.make_parser(column, contract)(bound)
        match column["type"]:
            case "integer":
                return str(parsed + by)
            case "decimal":
                text = format(parsed + Decimal(by), "f")
                return text.replace(".", ",") if contract["decimal_comma"] else text
            case _:
                moved = parsed + timedelta(days=by)
                return moved.strftime(column["format"]) if column["format"] else moved.isoformat()
    except (ValueError, ArithmeticError):  # the first or the last day of the calendar
        return ""
