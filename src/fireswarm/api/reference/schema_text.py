"""JSON Schemas as text for people: types with links to named schemas, limits, and example values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fireswarm.contracts.base import JsonObject

RANGES = (("minLength", "maxLength", " characters"), ("minimum", "maximum", ""), ("minItems", "maxItems", " items"))
"""Keys of a lower and an upper bound, and what is counted."""

FORMATS: Mapping[str, str] = {"date-time": "time of RFC 3339", "binary": "bytes"}
REFERENCE = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class TypePart:
    """A part of a type's text; ``schema`` is the named schema that it links to, if any."""

    text: str
    schema: str = ""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of a body, or a parameter of a request."""

    name: str
    place: str
    is_required: bool
    type: tuple[TypePart, ...]
    limits: str
    description: str


def describe_type(schema: JsonObject) -> tuple[TypePart, ...]:
    """Return the type of a schema as text: alternatives, items of arrays and values of objects are spelled out."""
    return tuple(_describe(schema)) or (TypePart("any JSON"),)


def describe_limits(schema: JsonObject) -> str:
    """Return the limits and the default of a schema, also of its alternatives, as a list of words."""
    words = list(dict.fromkeys(_limits_of(schema)))
    if "default" in schema and schema["default"] not in (None, "", [], {}):
        words.append(f"default {_as_text(schema['default'])}")
    return ", ".join(words)


def make_fields(schema: JsonObject) -> list[FieldRow]:
    """Return a row for each property of an object."""
    required = schema.get("required", ())
    return [
        FieldRow(
            name, "", name in required, describe_type(each), describe_limits(each), str(each.get("description", ""))
        )
        for name, each in schema.get("properties", {}).items()
    ]


def make_parameters(operation: JsonObject) -> list[FieldRow]:
    """Return a row for each parameter of an operation."""
    return [
        FieldRow(
            each["name"],
            each["in"],
            bool(each.get("required")),
            describe_type(_without_null(each["schema"])),
            describe_limits(each["schema"]),
            str(each.get("description") or each["schema"].get("description", "")),
        )
        for each in operation.get("parameters", ())
    ]


def make_example(schema: JsonObject, schemas: JsonObject) -> Any:
    """Return an example of a value: of an object the required properties, or else the first one."""
    schema = resolve(schema, schemas)
    if examples := schema.get("examples"):
        return examples[0]
    properties: dict[str, JsonObject] = schema.get("properties", {})
    names = schema.get("required") or list(properties)[:1]
    return {name: make_example(properties[name], schemas) for name in names}


def resolve(schema: JsonObject, schemas: JsonObject) -> JsonObject:
    """Return the schema that a reference names, or the first one that is not null of alternatives."""
    while "$ref" in schema or "anyOf" in schema:
        if "examples" in schema:
            return schema
        if "$ref" in schema:
            schema = schemas[schema_name(schema)]
        else:
            schema = next(each for each in schema["anyOf"] if each.get("type") != "null")
    return schema


def schema_name(schema: JsonObject) -> str:
    """Return the name of the schema that a reference names, or ""."""
    return str(schema.get("$ref", "")).removeprefix(REFERENCE)


def _without_null(schema: JsonObject) -> JsonObject:
    """Return the schema without null as an alternative: a parameter that may be omitted cannot be sent as null."""
    others = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return {**schema, "anyOf": others} if others else schema


def _describe(schema: JsonObject) -> Iterator[TypePart]:
    if name := schema_name(schema):
        yield TypePart(name, name)
    elif "anyOf" in schema:
        for number, each in enumerate(schema["anyOf"]):
            if number:
                yield TypePart(" or ")
            yield from describe_type(each)
    elif "enum" in schema:
        yield TypePart("one of " + ", ".join(map(_as_text, schema["enum"])))
    elif schema.get("type") == "array":
        yield TypePart("array of ")
        yield from describe_type(schema.get("items", {}))
    elif schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        yield TypePart("object with values of ")
        yield from describe_type(cast("JsonObject", schema["additionalProperties"]))
    elif "type" in schema:
        yield TypePart(FORMATS.get(schema.get("format", ""), str(schema["type"])))


def _limits_of(schema: JsonObject) -> Iterator[str]:
    for lowest, highest, unit in RANGES:
        if lowest in schema and highest in schema:
            yield f"{_as_text(schema[lowest])} to {_as_text(schema[highest])}{unit}"
        elif lowest in schema or highest in schema:
            name, bound = (lowest, "at least") if lowest in schema else (highest, "at most")
            yield f"{bound} {_as_text(schema[name])}{unit}"
    if "exclusiveMinimum" in schema:
        yield f"more than {_as_text(schema['exclusiveMinimum'])}"
    if "pattern" in schema:
        yield f"pattern {schema['pattern']}"
    for each in [*schema.get("anyOf", ()), schema.get("items", {})]:
        if each:
            yield from _limits_of(each)


def _as_text(value: Any) -> str:
    if isinstance(value, (bool, dict, list)):
        return json.dumps(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
