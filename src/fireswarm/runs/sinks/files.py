"""Run files of the stand-alone agent: ``events.jsonl``, one event per line, and what a run needs in order to continue.

They are in the state folder of the user. A copy of the events is in ``<jsonl_dir>/<run_id>/`` of the project, for
people: only `agent replay` reads it, since what the agent runs may have changed it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from fireswarm.contracts.base import command_line, encode_json, explain_validation
from fireswarm.contracts.llm.decision import ActionType, StepStatus
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.regular_file import append_without_links
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.redaction import Redactor, StreamRedactor
from fireswarm.runs.sinks.seal import TASK_FILE
from fireswarm.runs.sinks.step_file import STEPS_FILE, StepFile
from fireswarm.settings.run_folders import RUN_ID, make_runs_folder, state_home

EVENTS_FILE = "events.jsonl"

Watcher = Callable[[EventRecord], None]

_log = logging.getLogger(__name__)


def new_run_id(now: datetime | None = None) -> str:
    """Return ``YYYYMMDD-HHMMSS-<short-uuid>`` in UTC.

    It sorts by time, and two runs of one second have different ids.
    """
    return f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"


class RunLog:
    """Writes the events of a run to a file, each one flushed before the run continues.

    ``on_event`` and ``on_words`` receive events and the model's text as they arrive, without secrets.
    """

    def __init__(
        self,
        folder: Path,
        run_id: str,
        clock: Clock,
        redactor: Redactor,
        *,
        debug: bool = False,
        on_event: Watcher | None = None,
        on_words: Callable[[str], None] | None = None,
        copy: BinaryIO | None = None,
    ) -> None:
        """Create *folder* and open its log, or continue the log of an earlier start of the run.

        The events are also written to *copy*, which is closed with the log.
        """
        self._copy = copy
        self.run_id = run_id
        self.folder = folder
        self._clock = clock
        self._redactor = redactor
        self._mode = "debug" if debug else "redacted"
        self._on_event = on_event
        self._on_words = on_words
        self._stream = StreamRedactor(redactor)
        self._trace = uuid.uuid4().hex
        self._turn = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._earlier = _earlier_events(folder)
        self.step_file = StepFile(folder, redactor)
        self.steps = self.step_file.steps
        self.earlier_kinds = self.steps.earlier_kinds
        if self._earlier and (reason := _lost_steps(folder, self.step_file)):
            self.step_file.close()
            raise InvalidInput(reason)
        self._file = append_without_links(folder, (EVENTS_FILE,))

    @property
    def follows(self) -> bool:
        """True when ``on_words`` is set."""
        return self._on_words is not None

    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None:
        """Write one event, without secrets and control characters. Events of an earlier start are not repeated."""
        self._end_words()
        cleaned = self._redactor.value(payload)
        if self._earlier and self._earlier[key := _key_of(kind.value, cleaned)] > 0:
            self._earlier[key] -= 1
            return
        self._turn = payload.get("turn", self._turn)
        content = {
            "run_id": self.run_id,
            "trace_id": self._trace,
            "span_id": f"turn-{self._turn}",
            "timestamp": self._clock.now().isoformat(),
            "event_type": kind.value,
            "payload": cleaned,
            "redaction_mode": self._mode,
        }
        line = encode_json(content) + b"\n"
        self._file.write(line)
        self._file.flush()
        if self._copy is not None:
            with contextlib.suppress(OSError):  # its disk is full: the run goes on
                self._copy.write(line)
                self._copy.flush()
        if self._on_event is not None:
            self._on_event(EventRecord.model_validate(content))

    def words(self, text: str) -> None:
        """Pass a piece of the model's answer to ``on_words``. Pieces are not stored."""
        if self._on_words is not None and (ready := self._stream.feed(text)):
            self._on_words(ready)

    def record_usage(self, usage: Mapping[str, Any]) -> None:
        """Do nothing: the events and the ledger record the spend."""

    def has_begun(self, name: str) -> bool:
        """Return True for a step that an earlier start of the run has finished, or may have executed."""
        return self.steps.has_begun(name)

    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[dict[str, Any]]],
        *,
        idempotent: bool,
        skipped: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run the step, unless an earlier start of the run has finished it."""
        return await self.steps.step(name, None, run, idempotent=idempotent, skipped=skipped)

    def body(self, name: str, content: str) -> None:
        """Store the body of a request or answer for debugging, without secrets."""
        self._write("bodies", name, content)

    async def keep(self, name: str, text: str) -> str:
        """Store a text in the folder of the run, without secrets, and return its path."""
        return str(self._write("kept", name, text))

    def _write(self, folder: str, name: str, text: str) -> Path:
        """Write a text to a folder of the run, without secrets, and return its path."""
        path = self.folder / folder / re.sub(r"[^A-Za-z0-9._-]", "_", name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(self._redactor.clean(text), encoding="utf-8")
        return path

    def close(self) -> None:
        """Flush and close the log."""
        self._end_words()
        self._file.close()
        self.step_file.close()
        if self._copy is not None:
            with contextlib.suppress(OSError):
                self._copy.close()

    def _end_words(self) -> None:
        if self._on_words is not None and (rest := self._stream.rest()):
            self._on_words(rest)


def open_copy(root: Path, logs: Path, run_id: str) -> BinaryIO | None:
    """Open the copy of a run's events in the folder *logs* of the project *root*, without following links below it.

    Returns None, and logs a warning, if it cannot be written: that does not stop a run.
    """
    place = root / logs
    top = root if place.is_relative_to(root) and ".." not in logs.parts else place
    try:
        make_runs_folder(place)
        return append_without_links(top, (*place.relative_to(top).parts, run_id, EVENTS_FILE))
    except OSError as error:
        _log.warning("the events of run %s are not written to %s: %s", run_id, place, error.strerror)
        return None


def _key_of(kind: str, payload: Any) -> str:
    return f"{kind} {json.dumps(payload, sort_keys=True, default=str)}"


def _earlier_events(folder: Path) -> Counter[str]:
    """Count the events of an earlier start of the run, except those of its end."""
    path = folder / EVENTS_FILE
    if not path.is_file():
        return Counter()
    if (content := path.read_bytes()) and not content.endswith(b"\n"):  # a crash cut off the last line
        path.write_bytes(content[: content.rfind(b"\n") + 1])
    ended = (EventType.RUN_FINISHED, EventType.RUN_FAILED)
    return Counter(
        _key_of(event.event_type.value, event.payload) for event in read_events(folder) if event.event_type not in ended
    )


def _lost_steps(folder: Path, file: StepFile) -> str:
    """Return why a run cannot be resumed: ``steps.jsonl`` lacks steps that are in its events.

    Returns "" if no step is missing.

    Only the newest answer may be missing after a crash of the machine: it is requested again.
    """
    turns, actions = set[int](), set[str]()
    for event in read_events(folder):
        payload = event.payload
        if event.event_type is EventType.LLM_DECISION_DECODED and payload.get("ok"):
            turns.add(int(payload["turn"]))
        unfinished = (StepStatus.REFUSED, StepStatus.INTERRUPTED)
        done = event.event_type is EventType.SKILL_STEP_EXECUTED and payload.get("status") not in unfinished
        if done and payload.get("type") in (ActionType.RUN_COMMAND, ActionType.CALL_SKILL):
            actions.add(str(payload.get("step_id")))
    lost_turns = {turn for turn in turns if not file.has_answer(turn)}
    lost_actions = {action for action in actions if not file.steps.earlier_kinds(action) & {"act", "left"}}
    if not lost_actions and (not lost_turns or (lost_turns == {max(turns)} and len(turns) > 1)):
        return ""
    return (
        f"{folder / STEPS_FILE} is missing {len(lost_turns)} answers and {len(lost_actions)} commands or skills "
        f"recorded in {EVENTS_FILE}; resuming would run them again. Restore the file, or start a new run; `agent "
        f"replay {folder.name}` shows the finished actions"
    )


def run_folders(runs: Path) -> list[Path]:
    """Return the folders of all runs in *runs*, the newest first."""
    known = [path for path in runs.glob("*-*-*") if RUN_ID.match(path.name) and (path / EVENTS_FILE).is_file()]
    # The id has a resolution of one second; among equal times, the file written last is the newest.
    return sorted(known, key=lambda path: (path.name[:15], (path / EVENTS_FILE).stat().st_mtime_ns), reverse=True)


def run_folder(runs: Path, run_id: str, logs: Path | None = None) -> Path:
    """Return the folder of a run; ``latest`` is the newest. Raises NotFound and InvalidInput.

    *logs* is the folder with the copies for people: a run that is only there cannot be continued, and the error says
    so.
    """
    if run_id != "latest" and not RUN_ID.match(run_id):
        raise InvalidInput(f"{run_id!r} is not a run id such as 20261122-081500-0a1b2c3d; `latest` is the newest")
    known = run_folders(runs)
    found = known[:1] if run_id == "latest" else [folder for folder in known if folder.name == run_id]
    if found:
        return found[0]
    for task in state_home().glob(f"*/{run_id}/{TASK_FILE}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            raise NotFound(f"run {run_id} worked in {json.loads(task.read_bytes())['cwd']}: resume it there")
    copies = [folder.name for folder in run_folders(logs)] if logs is not None else []
    if copies and run_id in ("latest", *copies):
        copied = copies[0] if run_id == "latest" else run_id
        raise NotFound(
            f"{logs} has only the log of run {copied}, and the run itself is not in {runs}: another user, machine or "
            f"version of fireswarm made it. It cannot be continued; {command_line('agent', 'replay', copied)} shows it"
        )
    if run_id == "latest":
        raise NotFound("there are no runs of this folder yet: `agent run` starts one")
    raise NotFound(f"there is no run {run_id} of this folder: `agent runs` lists them")


def read_events(folder: Path) -> Iterator[EventRecord]:
    """Yield a run's events in order.

    Skips a last line that a crash cut off; raises InvalidInput for any other invalid line.
    """
    path = folder / EVENTS_FILE
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            yield EventRecord.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines):
                return
            raise InvalidInput(f"{path}:{number} is not an event: {explain_validation(error)}") from error
