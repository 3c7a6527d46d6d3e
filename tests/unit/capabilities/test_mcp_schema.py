"""Schemas of servers become those of objects without alternatives at the top, which all providers accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.capabilities.mcp.schema import MAX_NOTE_CHARS, REFUSED, object_schema
from tests.support.mcp_odd_server import EITHER

A, B = {"type": "string"}, {"type": "integer"}


def shape(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the properties and the required ones of the schema for the model."""
    made, note = object_schema(schema)
    assert made["type"] == "object" and not made.keys() & set(REFUSED)
    assert bool(note) == bool(schema.keys() & set(REFUSED))
    return made.get("properties", {}), made.get("required", [])


def test_alternatives_give_their_properties_and_what_all_require() -> None:
    kinds = {"anyOf": [{"const": "file"}, {"const": "page"}]}
    assert shape(EITHER) == ({"kind": kinds, "path": A, "url": {"$ref": "#/$defs/Url"}}, ["kind"])
    made, note = object_schema(EITHER)
    assert made["$defs"] == EITHER["$defs"]
    assert json.loads(note.partition(": ")[2]) == {"oneOf": EITHER["oneOf"]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": A}}, ({"a": A}, [])),
        ({"type": ["object", "null"], "properties": {"a": A}, "required": ["a"]}, ({"a": A}, ["a"])),
        ({"properties": {"a": A, "b": B}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ({"a": A, "b": B}, [])),
        ({"allOf": [{"properties": {"a": A}, "required": ["a"]}, {"properties": {"b": B}}]}, ({"a": A, "b": B}, ["a"])),
        ({"anyOf": [{"type": "object", "properties": {"a": A}, "required": ["a"]}, {"type": "null"}]},
            ({"a": A}, ["a"])),
        ({"properties": {"a": A}, "allOf": [{"properties": {"a": {"minLength": 1}}}]},
            ({"a": A | {"minLength": 1}}, [])),
        ({"$ref": "#/$defs/X", "$defs": {"X": {"oneOf": [{"properties": {"a": A}}]}}}, ({"a": A}, [])),
        ({"oneOf": [{"$ref": "#/$defs/X"}], "$defs": {"X": {"$ref": "#/$defs/X"}}}, ({}, [])),
        ({"oneOf": [True, {"properties": {"a": A}, "required": ["a"]}]}, ({"a": A}, [])),
        ({"oneOf": "x", "allOf": [3], "anyOf": [], "required": 1, "properties": [], "not": {}}, ({}, [])),
        ({"allOf": [{"properties": {"a": {"$ref": "#/allOf/0/properties/b"}, "b": B}}]}, ({"a": {}, "b": B}, [])),
        ({"allOf": [{"oneOf": [{"properties": {"a": A}}, {"properties": {"b": B}}]}]}, ({"a": A, "b": B}, [])),
        ({"oneOf": [{"required": ["missing"]}]}, ({}, [])),
    ],
)  # fmt: skip
def test_schema_becomes_that_of_an_object(schema: dict[str, Any], expected: tuple[dict[str, Any], list[str]]) -> None:
    assert shape(schema) == expected


def test_properties_of_branches_are_not_refused_by_the_rest() -> None:
    made, _ = object_schema({"additionalProperties": False, "oneOf": [{"properties": {"a": A}}]})
    assert "additionalProperties" not in made
    assert object_schema({"type": "object", "additionalProperties": False})[0]["additionalProperties"] is False


def test_note_on_many_alternatives_is_cut() -> None:
    _, note = object_schema({"oneOf": [{"properties": {f"p{number}": A}} for number in range(500)]})
    assert MAX_NOTE_CHARS < len(note) < MAX_NOTE_CHARS + 100 and note.endswith("…")


def test_schema_that_repeats_its_references_is_merged_in_bounded_time() -> None:
    names = [f"X{number}" for number in range(60)]
    levels: dict[str, Any] = {
        name: {"oneOf": [{"$ref": f"#/$defs/{after}"}] * 2} for name, after in zip(names, names[1:], strict=False)
    }
    assert shape({"$ref": "#/$defs/X0", "$defs": levels}) == ({}, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["object", "#/oneOf/0", "#", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*REFUSED, "properties", "required", "type", "a"]), inner, max_size=4)
    ),
)


@given(st.dictionaries(st.sampled_from([*REFUSED, "properties", "required", "type"]), JSON))
def test_any_schema_becomes_that_of_an_object(schema: dict[str, Any]) -> None:
    made, _ = object_schema(schema)
    assert made["type"] == "object" and not made.keys() & set(REFUSED)
