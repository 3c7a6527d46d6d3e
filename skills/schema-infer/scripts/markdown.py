"""Read an API document in Markdown: headings such as ``POST /links``, and the tables of parameters below them."""

from __future__ import annotations

import re
from typing import Any

from fireswarm import pipelines

from .reading import Reading, Source

_CALL = re.compile(r"`?\b(GET|POST|PUT|PATCH|DELETE|HEAD)\s+(/[^\s`]*)`?\s*[-:]?\s*(.*)")
_BASE = re.compile(r"(?i)\bbase\s*url\b.*?(https?://[^\s`|>)]+)")
_ADDRESS = re.compile(r"(https?://[^\s`|>)]+)")
_KEY = re.compile(r"(?i)\b(api[ -]?key|bearer|oauth|basic auth|access token)\b")
_HEADING = re.compile(r"^(#{1,6})\s++((?:[^\s#]++|[\s#]++(?=[^\s#]))*+)[\s#]*+$")

KINDS: dict[str, pipelines.Kind] = {
    "string": "string", "text": "string", "str": "string", "date": "string", "datetime": "string", "uuid": "string",
    "integer": "integer", "int": "integer", "number": "number", "float": "number", "decimal": "number",
    "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array", "object": "object", "json": "object",
    "enum": "options",
}  # fmt: skip
PLACES: dict[str, pipelines.Place] = {
    "path": "path",
    "query": "query",
    "body": "body",
    "json": "body",
    "header": "header",
}
COLUMNS = {
    "parameter": "name", "name": "name", "field": "name", "in": "place", "where": "place", "location": "place",
    "type": "kind", "required": "required", "mandatory": "required", "description": "about", "meaning": "about",
    "default": "default",
}  # fmt: skip


def read(source: Source, name: str) -> Reading:
    """Read *source*; the result has no operations if the document has another form."""
    reading = Reading("TYPE2", name)
    lines = source.text.splitlines()
    resource = operation = ""
    columns: list[str] = []
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= line.lstrip().startswith("```")
        heading, call = _HEADING.match(line), _CALL.search(line)
        if heading and not reading.display_name and len(heading[1]) == 1:
            reading.display_name = heading[2].removesuffix(" API").strip()
        if call and not in_code and (heading or line.strip().startswith(("`", "**"))):
            operation = _operation(reading, source, number, resource, call, lines)
            columns = []
        elif heading:
            operation, resource = "", _resource(heading[2])
        if not reading.base_url and (
            base := _BASE.search(line) or (_ADDRESS.search(line) if heading is None else None)
        ):
            reading.base_url = base[1].rstrip("/.,;")
            reading.know("base_url", source.evidence(number))
        if not reading.credentials and (key := _KEY.search(line)):
            reading.credentials.append(pipelines.identifier(key[1]))
            reading.know("credentials", source.evidence(number))
        columns = _row(reading, source, number, line, operation, columns)
    return reading


def _resource(heading: str) -> str:
    word = pipelines.identifier(heading)
    if word.endswith("ves"):
        return f"{word[:-3]}f"
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def _operation(
    reading: Reading, source: Source, number: int, resource: str, call: re.Match[str], lines: list[str]
) -> str:
    method, path, title = call[1], call[2].rstrip("`.,"), call[3].strip("`*# ")
    resource = resource or pipelines.identifier(path.strip("/").split("/")[0] or "api")
    action = pipelines.identifier(title or f"{method} {path}")
    about = next((text.strip() for text in lines[number : number + 3] if text.strip() and text[0] not in "#|`"), "")
    key = f"{resource}.{action}"
    operation = pipelines.Operation(key=key, name=title, resource=resource, description=about, method=method, path=path)
    reading.operation(operation, source.evidence(number))
    return key


def _row(reading: Reading, source: Source, number: int, line: str, operation: str, columns: list[str]) -> list[str]:
    """Read one line of a table; returns the columns for the next line."""
    if not line.lstrip().startswith("|") or not operation:
        return []
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    if not columns:
        known = [COLUMNS.get(cell.strip("*` ").lower(), "") for cell in cells]
        return known if "name" in known else []
    if all(set(cell) <= set(":- ") for cell in cells):
        return columns
    row = dict(zip(columns, cells, strict=False))
    if name := row.get("name", "").strip("`* "):
        reading.parameter(_parameter(name, row, reading.operations[operation]), source.evidence(number))
    return columns


def _parameter(name: str, row: dict[str, str], operation: pipelines.Operation) -> pipelines.Parameter:
    kind = row.get("kind", "").lower()
    options = re.findall(r"`([^`]+)`", row.get("kind", ""))
    required = row.get("required", "").lower()
    default = row.get("default") or next(iter(re.findall(r"default\s+`([^`]*)`", required)), "")
    said = KINDS.get(re.split(r"[^a-z]", kind.strip("`* "))[0], "string")
    found: pipelines.Kind = "options" if len(options) > 1 else said
    place = PLACES.get(row.get("place", "").strip("`* ").lower(), "")
    return pipelines.Parameter(
        name=name,
        display_name=name,
        kind=found,
        required=required.startswith(("y", "true", "required", "\u2713")) or name in operation.placeholders,
        default=_value(default.strip("` "), found),
        description=row.get("about", ""),
        options=tuple(options) if len(options) > 1 else (),
        operations=(operation.key,),
        place="path" if name in operation.placeholders else place,
    )


def _value(text: str, kind: pipelines.Kind) -> Any:
    if not text:
        return None
    if kind == "integer":
        return int(text) if re.fullmatch(r"-?\d+", text) else None
    if kind == "number":
        return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
    return text.lower() == "true" if kind == "boolean" else text
