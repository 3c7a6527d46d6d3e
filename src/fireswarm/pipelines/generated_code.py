"""What may stand in generated code: files that can be read, and Python that keeps to the rules of a skill's code.

Those are one set of rules, since both run in a turn: synchronous, no threads that outlive the call, no call over a
network without a timeout.
"""

from __future__ import annotations

import json

from fireswarm.skills.checks.code import findings_in


def code_faults(path: str, text: str) -> list[str]:
    """What is wrong with one generated file; only Python and JSON are looked into."""
    if "\0" in text:
        return [f"{path}: contains a NUL character"]
    if path.endswith(".json"):
        try:
            json.loads(text)
        except ValueError as error:
            return [f"{path}: {error}"]
    if path.endswith(".py"):
        return [f"{path}:{line}: {rule}: {message}" for line, rule, message in findings_in(text)]
    return []
