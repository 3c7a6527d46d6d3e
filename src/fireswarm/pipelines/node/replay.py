"""Cases of a recording in the form in which the tests of the Python node replay them."""

from __future__ import annotations

from typing import Any

from fireswarm.pipelines.node.recording import CREDENTIALS, Case, RecordedNode, RecordedOperation
from fireswarm.pipelines.node.request_template import sent_by
from fireswarm.pipelines.node.schema import NodeSchema, identifier


def operation_keys(node: RecordedNode) -> dict[str, RecordedOperation]:
    """Return the operations by key; keys that would be equal get numbers, so that no operation is lost."""
    found: dict[str, RecordedOperation] = {}
    for operation in node.operations:
        parts = [str(part) for part in (operation.resource, operation.operation) if part not in ("", None)]
        key = ".".join(identifier(part) for part in parts) or "run"
        unique, number = key, 2
        while unique in found:
            unique, number = f"{key}_{number}", number + 1
        found[unique] = operation
    return found


def replay_cases(node: RecordedNode, schema: NodeSchema, base: str) -> list[dict[str, Any]]:
    """Return all cases that sent something: the operation, its parameters, the requests, the answers and the items.

    Those that sent what only a file of a workflow has are left out: no parameter has that.

    ``refused`` is the status of the answer of those whose answer is an error; without items the node raises ApiError.
    """
    known = {operation.key for operation in schema.operations}
    return [
        _replay_case(key, case, base)
        for key, operation in operation_keys(node).items()
        if key in known
        for case in operation.cases
        if case.requests and not case.error and not case.shows_file
    ]


def _replay_case(key: str, case: Case, base: str) -> dict[str, Any]:
    requests = [sent_by(request, base)._asdict() for request in case.requests]
    return {
        "operation": key,
        "case": case.case,
        "parameters": {name: value for name, value in case.given.items() if name != CREDENTIALS},
        "requests": requests,
        "answers": list(case.answers),
        "items": None if case.items is None else list(case.items),
        **({"refused": case.refused} if case.refused else {}),
    }
