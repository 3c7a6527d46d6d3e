"""The child of `skill_process`: run entries, and ask the parent to run programs that need their own confinement."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from fireswarm.contracts.regular_file import write_without_links
from fireswarm.errors import SandboxRefused
from fireswarm.processes.messages import elsewhere, read_message, take_pipes, write_message
from fireswarm.skills.running.in_child import run_entry

if TYPE_CHECKING:
    from fireswarm.processes.confinement.view import View


def main() -> None:
    """Answer the calls on the parent's pipes until it closes them."""
    requests, answers = take_pipes()
    elsewhere[:] = [partial(_ask_parent, requests, answers)]
    write_message(answers, json.dumps({"started": True}).encode())
    while True:
        try:
            folder, entry, deterministic, request, end = json.loads(read_message(requests))
        except EOFError:
            return
        answer = run_entry(folder, entry, deterministic, request, str(end))
        write_message(answers, json.dumps({"answer": answer}).encode())


def _ask_parent(
    requests: IO[bytes],
    answers: IO[bytes],
    command: Sequence[str],
    view: View,
    environment: Mapping[str, str],
    seconds: float,
) -> tuple[int, str]:
    """Let the parent run a program on the files of *view*, and return its exit code and output. Raises SandboxRefused.

    What the program wrote is written to *view*'s workspace if it is writable; what it removed stays.
    """
    workspace = view.workspace.resolve()
    files = {
        str(path.relative_to(workspace)): base64.b64encode(path.read_bytes()).decode()
        for path in sorted(workspace.rglob("*"))
        if path.is_file()
    }
    asked = {
        "command": [*command],
        "workspace": str(workspace),
        "files": files,
        "writable": view.writable,
        "readable": [str(place) for place in view.readable],
        "environment": dict(environment),
        "seconds": seconds,
    }
    write_message(answers, json.dumps({"run": asked}).encode())
    told: dict[str, Any] = json.loads(read_message(requests))
    if "refused" in told:
        raise SandboxRefused(told["refused"])
    for name, content in told["files"].items():
        write_without_links(workspace, PurePosixPath(name).parts, base64.b64decode(content))
    return told["code"], told["output"]
