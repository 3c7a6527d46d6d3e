"""Lenient parsing of the conversation contract in a SKILL.md; ``skills.checks`` contains the strict check.

Three fields, at the top level or in ``metadata``; there as a map or as YAML text, since the Agent Skills specification
allows only strings in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.frontmatter import check_yaml, explain_yaml
from fireswarm.contracts.skills.conversation import Terms
from fireswarm.errors import ConfigError
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, parse

FIELDS = ("interaction_outcomes", "state_persistence", "input_request_jsonschema")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Said(NamedTuple):
    """A field as written: its value, and the 0-based line of the frontmatter on which it begins."""

    value: Any
    line: int


def terms_of(skill: Skill) -> Terms | None:
    """Return a skill's contract about its conversation, or None. Raises ConfigError for an invalid one.

    The file is read again only if it has changed.
    """
    return _terms_of_version(skill.path, skill.path.stat().st_mtime_ns)


@lru_cache(maxsize=1_000)
def _terms_of_version(path: Path, mtime_ns: int) -> Terms | None:
    return read_terms(path)


def read_terms(path: Path) -> Terms | None:
    """Return the contract of a SKILL.md by its path."""
    with path.open("rb") as file:
        header = parse(file.read(MAX_FILE_BYTES + 1)).header
    if not any(name in header for name in FIELDS):
        return None
    try:
        fields = conversation_fields(header)
        return Terms.model_validate({name: field.value for name, field in fields.items()}) if fields else None
    except ValidationError as error:
        raise ConfigError(f"{path}: invalid conversation contract: {explain_validation(error)}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: the conversation contract is not valid YAML: {explain_yaml(error)}") from error


def conversation_fields(header: str) -> dict[str, Said]:
    """Return the conversation fields in a frontmatter. Raises YAMLError if it cannot be parsed."""
    check_yaml(header, _LOADER)
    node = yaml.compose(header, Loader=_LOADER)
    if not isinstance(node, yaml.MappingNode):
        return {}
    whole = yaml.load(header, Loader=_LOADER)
    fields: dict[str, Said] = {}
    for key, value in node.value:
        if key.value == "metadata" and isinstance(value, yaml.MappingNode):
            inner: Mapping[str, Any] = whole["metadata"]
            fields |= {name: _field(inner[name], line) for name, line in _lines(value) if name in FIELDS}
    return fields | {name: _field(whole[name], line) for name, line in _lines(node) if name in FIELDS}


def _lines(node: yaml.MappingNode) -> list[tuple[str, int]]:
    return [(str(key.value), int(key.start_mark.line)) for key, _ in node.value]


def _field(value: Any, line: int) -> Said:
    if isinstance(value, str):
        check_yaml(value, _LOADER)
        value = yaml.load(value, Loader=_LOADER)
    return Said(value, line)
