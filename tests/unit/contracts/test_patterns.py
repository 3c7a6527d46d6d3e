"""Errors about a pattern: people get words, never a regular expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import fireswarm as fs
from fireswarm.contracts.base import PATTERN_WORDS, RoleName, SessionName, explain_validation
from fireswarm.contracts.inputs import faults

SOURCE = Path(fs.__file__).parent


def patterns() -> Iterator[tuple[str, str]]:
    """Yield every pattern that a field or a type declares, with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                if keyword.arg == "pattern" and (pattern := read_text(path, keyword.value)) is not None:
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", pattern


def read_text(path: Path, value: ast.expr) -> str | None:
    """Return a literal, or the constant of a module that a name refers to; None for a variable."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.Name) and value.id.isupper():
        module = ".".join(("fireswarm", *path.relative_to(SOURCE).with_suffix("").parts))
        return str(getattr(import_module(module), value.id))
    return None


PATTERNS = dict(patterns())


def test_patterns_are_found() -> None:
    assert len(PATTERNS) > 15


@pytest.mark.parametrize("place", PATTERNS)
def test_every_pattern_of_a_field_has_words(place: str) -> None:
    assert PATTERNS[place] in PATTERN_WORDS, f"{place}: describe the pattern in contracts/base.py, PATTERN_WORDS"


@pytest.mark.parametrize(("kind", "text"), [(RoleName, "No Role"), (SessionName, "a/b"), (SessionName, "a\nb")])
def test_error_for_a_bad_name_says_what_it_has(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(text)
    told = explain_validation(caught.value)
    assert told.startswith("document: Input should have ")
    assert "^" not in told and "pattern" not in told


def test_pattern_of_a_skill_is_told_in_its_description() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^[a-z]+$", "description": "a lower-case word"}}}
    assert faults(schema, {"a": "A"}) == ["a: 'A' does not fit: a lower-case word"]
