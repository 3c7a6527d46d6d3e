"""The steps of a stand-alone run in ``steps.jsonl``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any, cast

from fireswarm.contracts.base import command_line, encode_json
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.llm.step_names import ANSWER
from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor
from fireswarm.runs.sinks.seal import Seal
from fireswarm.runs.steps import STEP_FINISHED, STEP_STARTED, KnownSteps, StepLog

STEPS_FILE = "steps.jsonl"

INTERRUPTED = (
    "The run was interrupted during this action. It is unknown if it took effect: check that before you repeat it."
)
"""Output of an interrupted action that must not be repeated."""

_STATES = {"started": STEP_STARTED, "finished": STEP_FINISHED}


def _lock(file: IO[bytes], folder: Path) -> None:
    """Lock the run against other processes until *file* is closed; the kernel releases the lock of a dead process."""
    if sys.platform == "win32":
        return
    import fcntl  # Windows has none

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InvalidInput(f"run {folder.name} is in progress in another process: wait until it ends") from error


class StepFile:
    """Stores the steps of a run in a file, one sealed record per line.

    A step that is not idempotent is recorded before it starts.
    """

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        """Read the steps of *folder* and open its file. A last line that a crash cut off is removed.

        Raises InvalidInput if another process works on the run, or if a record is not as this user's agent wrote it.
        """
        self._redactor = redactor
        self._known = KnownSteps()
        self._seal = Seal.of_run(folder)
        path = folder / STEPS_FILE
        self._file = path.open("ab")
        _lock(self._file, folder)
        try:
            self._read(path)
        except InvalidInput:
            self._file.close()
            raise
        self.steps = StepLog(self, self._known)

    def has_answer(self, turn: int) -> bool:
        """Return True if the model's answer of a turn is stored."""
        return any(step.startswith(f"{ANSWER}:{turn}.") for step in self._known.finished)

    def note_step(self, kind: str, step: str, **more: Any) -> None:
        """Do nothing: the file records each step once."""

    def fail_step(self, step: str, error: Exception) -> None:
        """Do nothing: the run ends with the error, and a step that must not be repeated stays in doubt."""

    async def begin_step(self, step: str) -> None:
        """Record the start of a step that must not be repeated."""
        self._write({"step": step, "state": "started"})

    @property
    def may_start(self) -> bool:
        """True: no other process has the run."""
        return True

    async def renew(self) -> None:
        """Do nothing: this process owns the run until it ends."""

    async def finish_step(self, step: str, result: Any, *, last: bool) -> Any:
        """Write the result of a step without secrets, and return it in that form."""
        kept = self._redactor.step_result(result)
        self._write({"step": step, "state": "finished", "result": kept})
        self._known.in_doubt.discard(step)
        self._known.finished[step] = kept
        return dict(kept)

    async def load_result(self, kept: Any) -> Any:
        """Return the result of a finished step."""
        return dict(kept)

    async def doubt(self, step: str, skipped: Any) -> Any:
        """Return a result that informs the model of the interruption."""
        result = {**(skipped or {}), "text": INTERRUPTED, "status": StepStatus.INTERRUPTED.value}
        return await self.finish_step(step, result, last=False)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, path: Path) -> None:
        """Learn the steps in the file. Raises InvalidInput for a record whose seal is not right."""
        whole, _, cut = path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            record = self._seal.open(line)
            if record is None:
                raise InvalidInput(
                    f"{path}:{number} was not written for this run by this user's agent, or has been changed: the run "
                    f"cannot be continued. {command_line('agent', 'replay', path.parent.name)} shows it"
                )
            self._learn(record)
        if (last := self._seal.open(cut)) is not None:  # a crash cut off only the end of its line
            self._learn(last)
            self._file.write(b"\n")
        elif cut:
            self._file.truncate(len(whole) + bool(whole))

    def _learn(self, line: bytes) -> None:
        record = cast("dict[str, Any]", json.loads(line))
        kind, result = _STATES.get(str(record.get("state")), ""), record.get("result")
        if kind == STEP_STARTED or isinstance(result, dict):
            self._known.learn(kind, str(record.get("step")), result)

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(self._seal.close(encode_json(record)) + b"\n")
        self._file.flush()
