"""JSON Schemas as text for the page of the API's reference."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.api.reference.schema_text import (
    describe_limits,
    describe_type,
    make_example,
    make_fields,
    make_parameters,
)

REF = {"$ref": "#/components/schemas/Dog"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "time of RFC 3339"),
        (REF, "Dog"),
        ({"anyOf": [REF, {"type": "null"}]}, "Dog or null"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, REF]}}, "array of string or Dog"),
        ({"type": "array", "items": {}}, "array of any JSON"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object with values of integer"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"enum": ["a", 1, True], "type": "string"}, "one of a, 1, true"),
        ({}, "any JSON"),
    ],
)
def test_types_are_described(schema: dict[str, Any], text: str) -> None:
    assert "".join(part.text for part in describe_type(schema)) == text


def test_named_schemas_are_links() -> None:
    parts = describe_type({"type": "array", "items": REF})
    assert [(part.text, part.schema) for part in parts] == [("array of ", ""), ("Dog", "Dog")]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"minLength": 1, "maxLength": 8_000}, "1 to 8,000 characters"),
        ({"maximum": 10, "default": 0}, "at most 10, default 0"),
        ({"minimum": 0.5}, "at least 0.5"),
        ({"anyOf": [{"exclusiveMinimum": 0, "maximum": 86_400}, {"type": "null"}]}, "at most 86,400, more than 0"),
        ({"maxItems": 5, "items": {"pattern": "^a$"}, "default": []}, "at most 5 items, pattern ^a$"),
        ({"default": {"deep": False}}, 'default {"deep": false}'),
        ({"default": None}, ""),
        ({}, ""),
    ],
)
def test_limits_are_described(schema: dict[str, Any], text: str) -> None:
    assert describe_limits(schema) == text


def test_fields_say_what_is_required_and_parameters_where_they_are() -> None:
    schema = {"required": ["a"], "properties": {"a": {"type": "string", "description": "first"}, "b": REF}}
    assert [(row.name, row.is_required, row.description) for row in make_fields(schema)] == [
        ("a", True, "first"),
        ("b", False, ""),
    ]
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    [row] = make_parameters({"parameters": [{"name": "q", "in": "query", "schema": optional, "description": "words"}]})
    assert (row.place, row.is_required, row.description) == ("query", False, "words")
    assert [part.text for part in row.type] == ["string"]


def test_example_has_the_required_fields_or_else_the_first() -> None:
    dog = {"properties": {"name": {"examples": ["Rex"]}, "age": {"examples": [3]}}}
    house = {"required": ["dog", "size"], "properties": {"dog": REF, "size": {"examples": [7]}, "color": {}}}
    assert make_example({"anyOf": [house, {"type": "null"}]}, {"Dog": dog}) == {"dog": {"name": "Rex"}, "size": 7}
