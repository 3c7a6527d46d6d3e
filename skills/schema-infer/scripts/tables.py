"""Parameters in the tables and lists of a document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fireswarm import pipelines

KINDS: dict[str, pipelines.Kind] = {
    "string": "string", "text": "string", "str": "string", "date": "string", "datetime": "string", "uuid": "string",
    "integer": "integer", "int": "integer", "number": "number", "float": "number", "decimal": "number",
    "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array", "object": "object", "json": "object",
    "hash": "object", "enum": "options", "file": "binary", "int64": "integer",
}  # fmt: skip
PLACES: dict[str, pipelines.Place] = {
    "path": "path", "url": "path", "query": "query", "body": "body", "json": "body", "form": "body", "header": "header",
    "cookie": "cookie",
}  # fmt: skip
COLUMNS = {
    "parameter": "name", "name": "name", "field": "name", "attribute": "name", "argument": "name", "property": "name",
    "key": "name", "in": "place", "where": "place", "location": "place", "parameter type": "place",
    "type": "kind", "data type": "kind", "required": "required", "mandatory": "required", "required?": "required",
    "description": "about", "meaning": "about", "default": "default", "default value": "default",
}  # fmt: skip


def name_of(cell: str) -> str:
    """Return the name in the first cell of a row: the first text in backticks, or the first word."""
    quoted = re.match(r"[*_\s]*`([^`]+)`", cell)
    return (quoted[1] if quoted else cell.strip("*_ ").split(" ")[0] if cell.strip() else "").strip("*` ")


def parameter_of(
    name: str, row: Mapping[str, str], operation: pipelines.Operation, place: pipelines.Place
) -> pipelines.Parameter:
    """Return the parameter of a row. *place* is what the heading above says, if no column does."""
    kind = row.get("kind", "").lower()
    options = re.findall(r"`([^`]+)`", row.get("kind", ""))
    required = row.get("required", "").strip("*` ").lower()
    default = row.get("default") or next(iter(re.findall(r"default\s+`([^`]*)`", required)), "")
    known = KINDS.get(re.split(r"[^a-z0-9]", kind.strip("`* "))[0], "string")
    found: pipelines.Kind = "options" if len(options) > 1 else known
    where = row.get("place", "").strip("`* ").lower()
    is_needed = required.startswith(("y", "true", "required", "\u2713", "\u2714")) or ", required" in f", {required}"
    return pipelines.Parameter(
        name=name,
        display_name=name,
        kind=found,
        required=is_needed,
        default=_value(default.strip("` "), found),
        description=row.get("about", "")[:MAX_ABOUT_CHARS],
        options=tuple(options) if len(options) > 1 else (),
        operations=(operation.key,),
        place=PLACES.get(where, place) if not (name in operation.placeholders and not where) else "path",
    )


MAX_ABOUT_CHARS = 1_000


def _value(text: str, kind: pipelines.Kind) -> Any:
    if not text:
        return None
    if kind == "integer":
        return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None
    if kind == "number":
        return float(text) if re.fullmatch(r"-?\d{1,18}(\.\d+)?", text) else None
    return text.lower() == "true" if kind == "boolean" else text if kind in ("string", "options") else None
