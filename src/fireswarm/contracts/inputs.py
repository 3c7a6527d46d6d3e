"""Validation of inputs against a JSON Schema, with messages that say what to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fireswarm.errors import ConfigError

MAX_FAULTS = 10


def faults(schema: Mapping[str, Any], inputs: Mapping[str, Any], *, partial: bool = False) -> list[str]:
    """Return the faults of *inputs*, or an empty list. With *partial*, missing inputs are no fault.

    Raises ConfigError if *schema* is not a valid JSON Schema.
    """
    if not schema:
        return []
    from jsonschema import Draft202012Validator, SchemaError

    asked = {name: value for name, value in schema.items() if not (partial and name == "required")}
    try:
        Draft202012Validator.check_schema(asked)
    except SchemaError as error:
        raise ConfigError(f"input_request_jsonschema is not a valid JSON Schema: {error.message}") from error
    errors = sorted(Draft202012Validator(asked).iter_errors(dict(inputs)), key=lambda error: error.json_path)
    return [_describe_fault(error) for error in errors[:MAX_FAULTS]]


def value_fault(name: str, schema: Mapping[str, Any], value: Any) -> str:
    """Return the fault of one value, or ""."""
    reasons = faults({"properties": {name: dict(schema)}}, {name: value})
    return reasons[0] if reasons else ""


def _describe_fault(error: Any) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".")
    return f"{where}: {error.message}" if where else str(error.message)
