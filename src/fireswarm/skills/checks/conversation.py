"""Strict check of the conversation contract in a SKILL.md, by line and rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import ValidationError

from fireswarm.contracts.base import describe_fault
from fireswarm.contracts.inputs import faults
from fireswarm.contracts.skills.conversation import Terms
from fireswarm.errors import ConfigError
from fireswarm.skills.packs.parse import Parsed
from fireswarm.skills.packs.terms import FIELDS, conversation_fields

_RULES = {
    "interaction_outcomes": "interaction-outcomes",
    "state_persistence": "state-persistence",
    "input_request_jsonschema": "input-jsonschema",
}


def check_terms(parsed: Parsed) -> Iterator[tuple[int, str, str]]:
    """Yield the faults of the three fields; none if the fields are absent."""
    if not any(name in parsed.header for name in FIELDS):
        return
    try:
        fields = conversation_fields(parsed.header)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        yield parsed.header_line + (mark.line if mark else 0), "conversation-yaml", f"not valid YAML: {error}"
        return
    lines = {name: parsed.header_line + field.line for name, field in fields.items()}
    values = {name: field.value for name, field in fields.items()}
    try:
        Terms.model_validate(values)
    except ValidationError as error:
        for item in error.errors():
            path = [str(part) for part in item["loc"]]
            name = path[0] if path else next(iter(lines))
            where = ".".join(path) or "the conversation"
            rule = _RULES.get(path[0] if path else "", "conversation")
            yield lines.get(name, 1), rule, f"{where}: {describe_fault(item)}"
    schema = values.get("input_request_jsonschema")
    if isinstance(schema, dict):
        try:
            faults(schema, {})
        except ConfigError as error:
            yield lines["input_request_jsonschema"], "input-jsonschema", str(error)
