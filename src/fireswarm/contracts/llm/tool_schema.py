"""The JSON Schema of a tool's input as a model reads it: nothing that says nothing, since each request pays for it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, cast

from pydantic import BaseModel

NOTHING: tuple[Any, ...] = (None, "", [], {})


def tool_schema(model: type[BaseModel], without: Container[str] = ()) -> dict[str, Any]:
    """Return the schema of a tool's input. Fields named in *without* are not offered to the model, at any depth.

    Titles, which repeat names, empty defaults, ``null`` as another way to omit a field, and limits that are rarely
    reached are left out: the input is validated by *model*, which still takes all fields and names a limit that is
    exceeded.
    """
    return _shorten(model.model_json_schema(), without)


def _shorten(schema: Mapping[str, Any], without: Container[str]) -> dict[str, Any]:
    """Return one schema without what says nothing."""
    short: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            kept = {name: part for name, part in value.items() if keyword == "$defs" or name not in without}
            short[keyword] = {name: _shorten(part, without) for name, part in kept.items()}
        elif keyword == "items" or (keyword == "additionalProperties" and isinstance(value, dict)):
            short[keyword] = _shorten(value, without)
        elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
            short[keyword] = [_shorten(part, without) for part in value]
        elif keyword == "description":
            short[keyword] = " ".join(value.split()).replace("``", "`")
        elif not _is_empty(keyword, value):
            short[keyword] = value
    return _without_null(short) if schema.get("default", ...) is None else short


def _is_empty(keyword: str, value: Any) -> bool:
    if keyword == "default":
        return any(value == nothing and type(value) is type(nothing) for nothing in NOTHING)
    return keyword in ("title", "maxItems", "maxLength") or (keyword == "additionalProperties" and value is True)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional field without ``null``, if one other form is left."""
    forms = [form for form in cast("list[Any]", schema.get("anyOf") or []) if form != {"type": "null"}]
    if len(forms) != 1:
        return schema
    return {**forms[0], **{keyword: value for keyword, value in schema.items() if keyword != "anyOf"}}
