"""Compare a CSV file with its contract, ``contract.json``. Made by fireswarm; it needs Python 3.11 and nothing else.

``python validator.py FILE [--report REPORT.json]`` prints what departs from the contract. Exit code 0 if the file keeps
the contract, 1 if it departs from it, 2 if it cannot be read.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

CONTRACT = Path(__file__).with_name("contract.json")
DELIMITERS = (",", ";", "\t", "|")
MAX_EXAMPLES = 5
"""So many lines are named for each kind of departure; all are counted."""

MAX_SHOWN_CHARS = 80
MAX_FIELD_CHARS = 10_000_000
SIMILAR = 0.75
"""From this likeness on, 0 to 1, a new name of a column is reported as a renamed column."""

INTEGER = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TRUTHS = frozenset({"true", "false", "yes", "no", "1", "0"})


class CannotRead(Exception):
    """The file is no CSV text; the message says where, and what to do."""


class Findings:
    """Departures from the contract: each kind in each column with its count and first lines."""

    def __init__(self) -> None:
        """Begin without any."""
        self._found: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, code: str, column: str, line: int, value: str, what: str) -> None:
        """Count one departure; *what* describes its kind."""
        empty: dict[str, Any] = {"code": code, "column": column, "what": what, "count": 0, "examples": []}
        entry = self._found.setdefault((code, column), empty)
        entry["count"] += 1
        if len(entry["examples"]) < MAX_EXAMPLES:
            entry["examples"].append({"line": line, "value": value[:MAX_SHOWN_CHARS]})

    def listed(self) -> list[dict[str, Any]]:
        """Return all kinds in the order in which they were found."""
        return [*self._found.values()]


def validate(data: bytes, contract: Mapping[str, Any], name: str = "the file") -> dict[str, Any]:
    """Return the report on a file: its rows, and what departs from the contract. Raises CannotRead."""
    text = decode(data, contract["encoding"], name)
    delimiter = contract["delimiter"] or find_delimiter(text, contract)
    rows = read_rows(text, delimiter, name)
    first = next(rows, None)
    if first is None:
        raise CannotRead(f"{name} is empty: it needs a line with the names of the columns")
    findings = Findings()
    header = first[1]
    columns = find_columns(header, first[0], contract, findings)
    checks = [(position, make_check(column, contract, findings)) for position, column in columns]
    count = 0
    for line, fields in rows:
        count += 1
        if len(fields) != len(header):
            what = f"rows have another number of values than {len(header)}"
            findings.add("row_length", "", line, str(len(fields)), what)
        for position, check in checks:
            if position < len(fields):
                check(line, fields[position])
    found = findings.listed()
    return {
        "file": name,
        "rows": count,
        "columns": header,
        "delimiter": delimiter,
        "keeps": not found,
        "findings": found,
    }


def decode(data: bytes, encoding: str, name: str) -> str:
    """Return the text of a file, without a byte order mark. Raises CannotRead."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif encoding == "utf-8":
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        told = f"{name} line {line}: byte 0x{data[error.start]:02x} is not {encoding.removesuffix('-sig')}"
        raise CannotRead(
            f"{told}: save it as UTF-8, or write its encoding into the contract (encoding: latin-1)"
        ) from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise CannotRead(f"{name} line {line} has a zero byte: it is no text, export it as CSV")
    return text


def find_delimiter(text: str, contract: Mapping[str, Any]) -> str:
    """Return the delimiter by which the first line has the most names of the contract, then the most values."""
    names = {column["name"] for column in contract["columns"]}

    def rank(delimiter: str) -> tuple[int, int]:
        try:
            header = next(read_rows(text, delimiter, ""), (0, [""]))[1]
        except CannotRead:  # such as an open quote, which is a fault of the file if it is this delimiter's
            return 0, text.partition("\n")[0].count(delimiter) + 1
        return len(names & {*header}), len(header)

    return max(DELIMITERS, key=rank)


def read_rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the line of its beginning, from 1; empty lines are left out. Raises CannotRead."""
    csv.field_size_limit(MAX_FIELD_CHARS)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise CannotRead(f"{name} line {line} is no CSV ({error}): check the quotes of this row") from error


def find_columns(
    header: Sequence[str], line: int, contract: Mapping[str, Any], findings: Findings
) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the columns of the contract by their positions in the file; add what is missing, new or renamed."""
    wanted = {column["name"]: column for column in contract["columns"]}
    places = {name: header.index(name) for name in header}
    for name in places:
        if header.count(name) > 1:
            findings.add("duplicate_column", name, line, name, "several columns have this name; the first one is read")
    extra = [name for name in places if name not in wanted]
    columns: list[tuple[int, Mapping[str, Any]]] = []
    for name, column in wanted.items():
        if name in places:
            columns.append((places[name], column))
        elif renamed := find_similar(name, extra):
            extra.remove(renamed)
            columns.append((places[renamed], column))
            findings.add("renamed_column", name, line, renamed, "the column has another name")
        elif not column["optional"]:
            findings.add("missing_column", name, line, "", "the column is missing")
    for name in () if contract["extra_columns"] else extra:
        findings.add(
            "extra_column", name, line, name or f"column {places[name] + 1}", "the contract has no such column"
        )
    return columns


def find_similar(name: str, others: Sequence[str]) -> str:
    """Return the name of *others* that is most like *name*, or ""."""
    folded = fold(name)
    ranked = [(difflib.SequenceMatcher(None, folded, fold(other)).ratio(), other) for other in others if fold(other)]
    best = max(ranked, default=(0.0, ""))
    return best[1] if folded and best[0] >= SIMILAR else ""


def fold(name: str) -> str:
    """Return the letters and digits of a name in one spelling."""
    return "".join(each for each in unicodedata.normalize("NFKC", name).casefold() if each.isalnum())


def make_check(
    column: Mapping[str, Any], contract: Mapping[str, Any], findings: Findings
) -> Callable[[int, str], None]:
    """Return the check of one value of a column: its line, and the value."""
    name, parse = column["name"], make_parser(column, contract)
    nulls, values = frozenset(contract["null_values"]), frozenset(column["values"])
    pattern = re.compile(column["pattern"]) if column["pattern"] else None
    least, most = parse_bound(column, "minimum", parse), parse_bound(column, "maximum", parse)
    seen: dict[str, int] = {}

    def check(line: int, value: str) -> None:
        if value in nulls:
            if column["required"]:
                findings.add("null", name, line, value, "values are missing")
            return
        try:
            parsed = parse(value)
        except (ValueError, ArithmeticError):
            findings.add("type", name, line, value, f"values are no {column['type']}")
            return
        if values and value not in values:
            findings.add("enumeration", name, line, value, "values are not in the list of the contract")
        if pattern is not None and not pattern.fullmatch(value):
            findings.add("pattern", name, line, value, f"values do not match {column['pattern']}")
        if (least is not None and parsed < least) or (most is not None and parsed > most):
            told = f"values are not from {column['minimum'] or 'any'} to {column['maximum'] or 'any'}"
            findings.add("range", name, line, value, told)
        if column["unique"] and seen.setdefault(value, line) != line:
            findings.add("duplicate", name, line, value, "values stand more than once")

    return check


def parse_bound(column: Mapping[str, Any], key: str, parse: Callable[[str], Any]) -> Any:
    """Return the minimum or the maximum of a column, or None. Raises CannotRead."""
    try:
        return parse(column[key]) if column[key] else None
    except (ValueError, ArithmeticError) as error:
        told = f"the {key} {column[key]!r} is no {column['type']}"
        raise CannotRead(f"column {column['name']!r} of the contract: {told}, correct the contract") from error


def make_parser(column: Mapping[str, Any], contract: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return the function that parses a value of a column; it raises ValueError or ArithmeticError."""
    form = column["format"]
    match column["type"]:
        case "integer":
            return lambda text: int(matching(INTEGER, text))
        case "decimal" if contract["decimal_comma"]:
            return lambda text: Decimal(matching(DECIMAL, text.replace(".", "x").replace(",", ".")))
        case "decimal":
            return lambda text: Decimal(matching(DECIMAL, text))
        case "boolean":
            return parse_truth
        case "date" if form:
            return lambda text: datetime.strptime(text, form).date()
        case "date":
            return lambda text: date.fromisoformat(matching(DAY, text))
        case "datetime":
            return lambda text: parse_moment(text, form)
        case _:
            return str


def matching(pattern: re.Pattern[str], text: str) -> str:
    """Return the text. Raises ValueError if it does not match."""
    if pattern.fullmatch(text) is None:
        raise ValueError(text)
    return text


def parse_truth(text: str) -> bool:
    """Return whether a text means true. Raises ValueError."""
    if text.casefold() not in TRUTHS:
        raise ValueError(text)
    return text.casefold() in ("true", "yes", "1")


def parse_moment(text: str, form: str) -> datetime:
    """Return a time; one without a zone is taken for UTC. Raises ValueError."""
    moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def describe(report: Mapping[str, Any]) -> list[str]:
    """Return a report in lines: each kind of departure with its count and first lines."""
    lines = [
        f"{report['file']}: {report['rows']:,} rows, {'keeps' if report['keeps'] else 'departs from'} the contract"
    ]
    for found in report["findings"]:
        shown = ", ".join(f"line {example['line']}: {example['value']!r}" for example in found["examples"])
        lines.append(f"{found['code']} {found['column']!r}: {found['count']:,}, {found['what']} ({shown})")
    return lines


def main() -> int:
    """Check a file; return the exit code."""
    parser = argparse.ArgumentParser(description="Compare a CSV file with its contract.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--report", type=Path, help="JSON file for the report")
    given = parser.parse_args()
    try:
        contract = json.loads(CONTRACT.read_text(encoding="utf-8"))
        report = validate(given.file.read_bytes(), contract, given.file.name)
    except (CannotRead, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if given.report is not None:
        given.report.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
    print("\n".join(describe(report)))
    return 0 if report["keeps"] else 1


if __name__ == "__main__":
    sys.exit(main())
