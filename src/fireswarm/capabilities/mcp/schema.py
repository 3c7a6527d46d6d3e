"""Convert servers' input schemas to a form that model providers accept: an object without alternatives at the top.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from fireswarm.contracts.limits import truncate

ALTERNATIVES = ("oneOf", "anyOf")
REFUSED = (*ALTERNATIVES, "allOf", "not", "enum", "const", "$ref")
"""Keywords that a provider refuses at the top of an input schema. Nested ones are accepted."""

MAX_NOTE_CHARS = 2_000
"""Maximum length of the note on removed keywords; it is sent with the description in every request of a run."""

MAX_BRANCHES = 200
"""Maximum number of branches that are merged: with references to references, a schema can have any number."""

MAX_DEPTH = 16
"""Maximum depth of nested branches that are merged."""

_OPENNESS = ("additionalProperties", "unevaluatedProperties")
"""Keywords about other properties; they would refuse the properties of the branches."""

JsonSchema = Mapping[str, Any]


def object_schema(schema: JsonSchema) -> tuple[dict[str, Any], str]:
    """Return *schema* as an object schema, and a note for the model on the removed keywords, or "".

    The object has the properties of the schema and of all branches. Required are the properties that every alternative
    requires, and those that any part of an ``allOf`` requires. The server itself validates the input against its full
    schema.
    """
    removed = {keyword: schema[keyword] for keyword in REFUSED if keyword in schema}
    if not removed:
        return {**schema, "type": "object"}, ""
    merged = _Merge(schema).shape_of(schema, 0)
    kept = {key: value for key, value in schema.items() if key not in (*REFUSED, *_OPENNESS)}
    required = [name for name in merged.required if name in merged.properties]
    made = _without_lost_references(
        {**kept, "type": "object", "properties": merged.properties, "required": required}, tuple(removed)
    )
    if not required:
        del made["required"]
    told = truncate(json.dumps(removed, ensure_ascii=False, separators=(",", ":")), MAX_NOTE_CHARS)
    return made, f"The input must also match this part of its JSON Schema: {told}"


@dataclass(slots=True)
class _ObjectShape:
    """Properties of an object, and the names of its required properties."""

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, other: _ObjectShape) -> None:
        """Merge a shape that must match in addition."""
        for name, schema in other.properties.items():
            earlier = self.properties.get(name)
            both = isinstance(earlier, dict) and isinstance(schema, dict)
            self.properties[name] = {**cast("JsonSchema", earlier), **schema} if both else schema
        self.required |= other.required


@dataclass(slots=True)
class _Merge:
    """Merges the branches of one schema, *root*."""

    root: JsonSchema
    branches: int = 0

    def shape_of(self, schema: JsonSchema, depth: int) -> _ObjectShape:
        """Return the properties of a schema and of its branches."""
        shape = _ObjectShape()
        if depth > MAX_DEPTH:
            return shape
        properties, required = schema.get("properties"), schema.get("required")
        if isinstance(properties, dict):
            given = cast("dict[str, Any]", properties)
            shape.properties = {name: value for name, value in given.items() if value is not False}
        if isinstance(required, list):
            shape.required = {name: None for name in cast("list[Any]", required) if isinstance(name, str)}
        for branch in self._branches([schema] if "$ref" in schema else [], follow=True):
            shape.add(self.shape_of(branch, depth + 1))
        for branch in self._branches(schema.get("allOf")):
            shape.add(self.shape_of(branch, depth + 1))
        for keyword in ALTERNATIVES:
            shapes = [self.shape_of(branch, depth + 1) for branch in self._branches(schema.get(keyword))]
            shape.add(_either(shapes))
        return shape

    def _branches(self, listed: object, *, follow: bool = False) -> Iterator[JsonSchema]:
        """Yield the branches that an object may match; with *follow*, also those behind references."""
        if not isinstance(listed, list):
            return
        for branch in cast("list[Any]", listed):
            found = self._resolve(str(branch["$ref"])) if follow else branch
            self.branches += 1
            if self.branches <= MAX_BRANCHES and found is not False and _allows_object(found):
                yield cast("JsonSchema", found) if isinstance(found, dict) else {}

    def _resolve(self, reference: str) -> Any:
        """Return the part of the schema that a local reference names, or False."""
        found: Any = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = cast("JsonSchema", found)[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(cast("list[Any]", found)):
                found = cast("list[Any]", found)[int(key)]
            else:
                return False
        return found if reference.startswith("#/") else False


def _either(shapes: Sequence[_ObjectShape]) -> _ObjectShape:
    """Return the shape of alternatives: all properties of any of them, and the required ones of all."""
    either = _ObjectShape()
    for name in dict.fromkeys(name for shape in shapes for name in shape.properties):
        schemas: list[Any] = []
        for shape in shapes:
            if name in shape.properties and shape.properties[name] not in schemas:
                schemas.append(shape.properties[name])
        either.properties[name] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if shapes:
        either.required = {name: None for name in shapes[0].required if all(name in each.required for each in shapes)}
    return either


def _allows_object(schema: object) -> bool:
    kind: Any = cast("JsonSchema", schema).get("type") if isinstance(schema, dict) else None
    return kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind)


def _without_lost_references(value: Any, removed: Sequence[str]) -> Any:
    """Return a schema in which references into a removed keyword accept any value."""
    if isinstance(value, list):
        return [_without_lost_references(each, removed) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    schema = cast("dict[str, Any]", value)
    lost = str(schema.get("$ref", "")).startswith(tuple(f"#/{keyword}/" for keyword in removed))
    return {
        key: _without_lost_references(each, removed) for key, each in schema.items() if not (lost and key == "$ref")
    }
