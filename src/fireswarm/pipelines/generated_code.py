"""Rules for generated code: readable files, and Python that follows the rules for a skill's code.

The rules are the same, since both run in a turn: synchronous, no threads that outlive the call, no network call
without a timeout.
"""

from __future__ import annotations

import json

from fireswarm.pipelines.allowed_code import use_faults
from fireswarm.skills.checks.code import findings_in


def code_faults(path: str, text: str) -> list[str]:
    """Return the faults of one generated file; only Python and JSON are parsed."""
    if "\0" in text:
        return [f"{path}: contains a NUL character"]
    if path.endswith(".json"):
        try:
            json.loads(text)
        except ValueError as error:
            return [f"{path}: {error}"]
    if path.endswith(".py"):
        found = [f"{path}:{line}: {rule}: {message}" for line, rule, message in findings_in(text)]
        return found + use_faults(path, text)
    return []
