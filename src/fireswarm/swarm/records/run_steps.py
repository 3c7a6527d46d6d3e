"""The steps of a stand-alone run in ``steps.jsonl``: a run that goes on repeats none that has finished."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any, cast

from fireswarm.contracts.base import encode_json
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor

STEPS_FILE = "steps.jsonl"
STARTED, FINISHED = "started", "finished"

INTERRUPTED = (
    "The run was interrupted during this action. It is not known if it took effect: check that before you repeat it."
)
"""Output of an action that may not be repeated and had not finished."""


def _lock(file: IO[bytes], folder: Path) -> None:
    """Keep other processes from the run until *file* is closed; the kernel does so for a process that dies."""
    if sys.platform == "win32":
        return
    import fcntl  # Windows has none

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InvalidInput(f"run {folder.name} is in progress in another process: wait for its end") from error


class RunSteps:
    """Known steps of a run, and the file that new ones are added to.

    A step that is not idempotent is recorded before it starts.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        """Read the steps of *folder* and open its file. A last line that a crash cut off is left out.

        Raises InvalidInput if another process works on the run.
        """
        self._redactor = redactor
        self._finished: dict[str, dict[str, Any]] = {}
        self._in_doubt: set[str] = set()
        path = folder / STEPS_FILE
        self._file = path.open("ab")
        _lock(self._file, folder)
        known = path.read_bytes() if path.exists() else b""
        for line in known.split(b"\n"):
            self._learn(line)
        if known and not known.endswith(b"\n"):
            self._file.write(b"\n")

    def is_known(self, name: str) -> bool:
        """Return True for a step that will not be run."""
        return name in self._finished

    def has_answer(self, turn: int) -> bool:
        """Return True if the model's answer of a turn is known."""
        return any(name.startswith(f"llm:{turn}.") for name in self._finished)

    def has_begun(self, name: str) -> bool:
        """Return True for a step that has finished, or was interrupted."""
        return name in self._finished or name in self._in_doubt

    async def run(
        self,
        name: str,
        run: Callable[[], Awaitable[dict[str, Any]]],
        *,
        idempotent: bool,
        skipped: dict[str, Any] | None,
    ) -> dict[str, Any]:
        """Run a step once. One that may not be repeated and was interrupted gets *skipped*, which says so."""
        if name in self._finished:
            return dict(self._finished[name])
        if name in self._in_doubt:  # begun as one that may not be repeated, whatever it would be now
            result = {**(skipped or {}), "stdout_summary": INTERRUPTED, "status": StepStatus.INTERRUPTED.value}
        else:
            if not idempotent:
                self._write({"step": name, "state": STARTED})
            result = self._redactor.step_result(await run())
        self._write({"step": name, "state": FINISHED, "result": result})
        self._finished[name] = result
        return dict(result)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _learn(self, line: bytes) -> None:
        try:
            read: Any = json.loads(line)
        except ValueError:
            return
        if not isinstance(read, dict):
            return
        step = cast("dict[str, Any]", read)
        if step.get("state") == STARTED:
            self._in_doubt.add(str(step.get("step")))
        elif isinstance(step.get("result"), dict):
            self._finished[str(step.get("step"))] = step["result"]

    def _write(self, step: dict[str, Any]) -> None:
        self._file.write(encode_json(step) + b"\n")
        self._file.flush()
