"""Validation of inputs against a JSON Schema, with messages that explain the correction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from fireswarm.contracts.linear_pattern import check_pattern, search_pattern
from fireswarm.errors import ConfigError

MAX_FAULTS = 10


def faults(schema: Mapping[str, Any], inputs: Mapping[str, Any], *, partial: bool = False) -> list[str]:
    """Return the faults of *inputs*, or an empty list. With *partial*, missing inputs are allowed.

    Raises ConfigError if *schema* is not a valid JSON Schema, or has a pattern that needs more than linear time.
    """
    if not schema:
        return []
    asked = {name: value for name, value in schema.items() if not (partial and name == "required")}
    return faults_of_value(asked, dict(inputs), "input_request_jsonschema")


def faults_of_value(schema: Mapping[str, Any], value: Any, name: str = "json_schema") -> list[str]:
    """Return the faults of a value, or an empty list. *name* is that of the schema, for its errors.

    Raises ConfigError as ``faults`` does.
    """
    check_schema(schema, name)
    from referencing.exceptions import Unresolvable

    try:
        errors = sorted(_validator()(schema).iter_errors(value), key=lambda error: error.json_path)
    except Unresolvable as error:
        raise ConfigError(f"{name} has a $ref to {error.ref}, which it does not define") from error
    except RecursionError as error:
        raise ConfigError(f"{name} refers to itself without an end, or the value is nested too deep") from error
    return [_describe_fault(error) for error in errors[:MAX_FAULTS]]


def check_schema(schema: Mapping[str, Any], name: str = "json_schema") -> None:
    """Raise ConfigError if *schema* is not a valid JSON Schema, or has a pattern that needs more than linear time."""
    from jsonschema import SchemaError

    try:
        _validator().check_schema(schema)
        words = set(_keywords(schema))
    except SchemaError as error:
        raise ConfigError(f"{name} is not a valid JSON Schema: {error.message}") from error
    except RecursionError as error:
        raise ConfigError(f"{name} is nested too deep") from error
    if "unevaluatedProperties" in words and "patternProperties" in words:
        raise ConfigError(f"{name} has patternProperties: use additionalProperties with it")
    for pattern in _patterns(schema):
        check_pattern(pattern)


def value_fault(name: str, schema: Mapping[str, Any], value: Any) -> str:
    """Return the fault of one value, or ""."""
    reasons = faults({"properties": {name: dict(schema)}}, {name: value})
    return reasons[0] if reasons else ""


_DATA = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are data, not schemas."""


def _keywords(schema: Any) -> Iterator[str]:
    """Yield every keyword and name in a schema."""
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _keywords(item)
    if isinstance(schema, Mapping):
        for name, value in cast("Mapping[str, Any]", schema).items():
            yield name
            yield from _keywords(value)


def _patterns(schema: Any) -> Iterator[str]:
    """Yield the regular expressions in a schema."""
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _patterns(item)
    if isinstance(schema, Mapping):
        for name, value in cast("Mapping[str, Any]", schema).items():
            if name == "pattern" and isinstance(value, str):
                yield value
            elif name == "patternProperties" and isinstance(value, Mapping):
                yield from cast("Mapping[str, Any]", value)
            if name not in _DATA:
                yield from _patterns(value)


@cache
def _validator() -> Any:
    """Return a validator that matches patterns in linear time, since schema and values come from skills and models."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    rules = {"pattern": _pattern, "patternProperties": _pattern_properties, "additionalProperties": _other_properties}
    return extend(Draft202012Validator, rules)


def _pattern(_validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Exception]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not search_pattern(pattern, value):
        words = schema.get("description") if isinstance(schema, Mapping) else None
        yield ValidationError(f"{value!r} does not {f'fit: {words}' if words else f'match {pattern!r}'}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Any) -> Iterator[Exception]:
    if isinstance(value, Mapping):
        for pattern, schema in patterns.items():
            for name, item in cast("Mapping[str, Any]", value).items():
                if search_pattern(pattern, name):
                    yield from validator.descend(item, schema, path=name, schema_path=pattern)


def _other_properties(validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Exception]:
    from jsonschema import ValidationError

    if not isinstance(value, Mapping):
        return
    patterns, known = schema.get("patternProperties") or {}, schema.get("properties") or {}
    for name, item in cast("Mapping[str, Any]", value).items():
        if name in known or any(search_pattern(pattern, name) for pattern in patterns):
            continue
        if isinstance(allowed, Mapping):
            yield from validator.descend(item, allowed, path=name)
        elif allowed is False:
            yield ValidationError(f"unexpected property {name!r}")


def _describe_fault(error: Any) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".")
    return f"{where}: {error.message}" if where else str(error.message)
