"""What may stand in generated code: files that can be read, and Python that can be parsed and keeps to the rules."""

from __future__ import annotations

import ast
import json


def code_faults(path: str, text: str) -> list[str]:
    """What is wrong with one generated file; only Python and JSON are looked into."""
    if "\0" in text:
        return [f"{path}: holds a NUL character"]
    if path.endswith(".json"):
        try:
            json.loads(text)
        except ValueError as error:
            return [f"{path}: {error}"]
    if path.endswith(".py"):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            return [f"{path}: {error}"]
    return []
