"""Make the calls of a file with a node, and write what it sent and returned. No expectation is known here."""

from __future__ import annotations
import __future__

import importlib
import json
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

CHANGED_SECONDS = 1.0
"""A call of changed code that takes longer is ended."""


def make_call(package: str, call: dict[str, Any]) -> dict[str, Any]:
    """Return what one call sent, and what came back or why not."""
    sent: list[dict[str, Any]] = []
    credential: dict[str, Any] = call["credential"]
    answers: list[Any] = list(call["answers"])

    def send(method: str, path: str, **more: Any) -> Any:
        sent.append(json.loads(json.dumps({"method": method, "path": path, **more})))
        if call["refused"]:
            raise importlib.import_module(f"{package}.transport").ApiError(method, path, call["refused"], "refused")
        return answers[len(sent) - 1] if len(sent) <= len(answers) else call["otherwise"]

    def give(field: str, otherwise: Any = None) -> Any:
        return credential[field]

    try:
        node = importlib.import_module(package)
        operations = importlib.import_module(f"{package}.operations")
        vars(operations)["credential"] = give
        with changed(operations, call):
            made = json.loads(json.dumps(node.run(call["operation"], call["parameters"], send)))
    except BaseException as error:  # whatever the node raises is its reply
        return {"sent": sent, "error": f"{type(error).__name__}: {error}"}
    return {"sent": sent, "made": made}


@contextmanager
def changed(operations: ModuleType, call: dict[str, Any]) -> Generator[None]:
    """Put the changed code of a call in the place of a function meanwhile, if the call has such code."""
    if "code" not in call:
        yield
        return
    names, name = vars(operations), call["function"]
    kept = names[name]
    signal.signal(signal.SIGALRM, end_call)
    signal.setitimer(signal.ITIMER_REAL, CHANGED_SECONDS)
    try:
        code = compile(call["code"], name, "exec", flags=__future__.annotations.compiler_flag)
        exec(code, names)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        names[name] = kept


def end_call(*_: object) -> None:
    """End a call of changed code."""
    raise TimeoutError("it did not end")


def main(calls: str, replies: str) -> None:
    """Make all calls of a file, and write their replies."""
    asked = json.loads(Path(calls).read_text(encoding="utf-8"))
    Path(replies).write_text(json.dumps([make_call(each["package"], each) for each in asked]), encoding="utf-8")


main(*sys.argv[1:])
