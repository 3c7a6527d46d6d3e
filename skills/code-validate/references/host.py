"""Make the calls of a file with a node, and write what it sent and returned. No expectation is known here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def make_call(package: str, call: dict[str, Any]) -> dict[str, Any]:
    """Return what one call sent, and what came back or why not."""
    sent: list[dict[str, Any]] = []
    credential: dict[str, Any] = call["credential"]
    answers: list[Any] = list(call["answers"])

    def send(method: str, path: str, **more: Any) -> Any:
        sent.append(json.loads(json.dumps({"method": method, "path": path, **more})))
        return answers[len(sent) - 1] if len(sent) <= len(answers) else call["otherwise"]

    def give(field: str, otherwise: Any = None) -> Any:
        return credential[field]

    try:
        node = importlib.import_module(package)
        operations = importlib.import_module(f"{package}.operations")
        vars(operations)["credential"] = give
        made = json.loads(json.dumps(node.run(call["operation"], call["parameters"], send)))
    except BaseException as error:  # whatever the node raises is its reply
        return {"sent": sent, "error": f"{type(error).__name__}: {error}"}
    return {"sent": sent, "made": made}


def main(calls: str, replies: str) -> None:
    """Make all calls of a file, and write their replies."""
    asked = json.loads(Path(calls).read_text(encoding="utf-8"))
    Path(replies).write_text(json.dumps([make_call(each["package"], each) for each in asked]), encoding="utf-8")


main(*sys.argv[1:])
