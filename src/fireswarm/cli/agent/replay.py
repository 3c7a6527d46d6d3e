"""Implementation of ``agent replay`` and ``agent runs``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fireswarm.cli.shared.console import json_text
from fireswarm.contracts.base import command_line
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.errors import FireswarmError, NotFound
from fireswarm.mind import ConclusionStatus
from fireswarm.runs.sinks.files import read_events, run_folder, run_folders
from fireswarm.settings import AgentSettings
from fireswarm.settings.run_folders import kept_runs

if TYPE_CHECKING:
    from rich.console import Console


def replay_run(settings: AgentSettings, run_id: str, *, event_stream: bool, as_json: bool) -> None:
    """Print a run from its log."""
    folder = _folder_of(run_id, Path.cwd() / settings.logging.jsonl_dir)
    events = list(read_events(folder))
    if as_json:
        sys.stdout.write(json_text([event.model_dump(mode="json") for event in events]) + "\n")
        return
    from fireswarm.cli.shared.console import make_console
    from fireswarm.cli.watch.event_line import EventPrinter

    console = make_console()
    printer = EventPrinter(console, "debug" if event_stream else settings.logging.level)
    for event in events:
        printer.event(event)
    _answer_of(events[-1:], console)
    if note := _how_to_go_on(events, folder.name):
        console.print(note, style="yellow", soft_wrap=True)


def _folder_of(run_id: str, logs: Path) -> Path:
    """Return the folder of a run, or of its log in *logs*. Raises NotFound and InvalidInput."""
    try:
        return run_folder(kept_runs(Path.cwd()), run_id, logs)
    except NotFound:
        folder = run_folder(logs, run_id)
    sys.stderr.write(f"from {folder}: a log that anything that ran in this folder may have changed\n")
    return folder


def _how_to_go_on(events: Sequence[EventRecord], run_id: str) -> str:
    """Return the hint for a run that has not ended, or ""."""
    last = events[-1] if events else None
    if last is None or last.event_type not in (EventType.RUN_FINISHED, EventType.RUN_FAILED):
        why = "has not ended: it is in progress, or its process was killed"
    elif last.payload.get("mode") == ConclusionStatus.WAITING.value:
        why = "waits for an answer"
    elif last.payload.get("mode") == ConclusionStatus.BLOCKED.value:
        why = "is blocked"
    else:
        return ""
    return f"This run {why}. Continue with `{command_line('agent', 'resume', run_id)}`."


def _answer_of(last: Sequence[EventRecord], console: Console) -> None:
    from fireswarm.cli.watch.answer import print_answer

    for event in last:
        if answer := event.payload.get("answer"):
            console.print()
            print_answer(str(answer), console)


NOT_ENDED = "not ended"
"""Status of a run that is in progress, or whose process was killed."""


def print_runs(limit: int, *, as_json: bool) -> None:
    """Print the newest runs of the current folder."""
    from fireswarm.cli.shared.options import ago, console, print_json
    from fireswarm.cli.shared.tables import cell, table

    runs = kept_runs(Path.cwd())
    listed = [_row_of(folder) for folder in run_folders(runs)[:limit]]
    if as_json:
        print_json(listed)
        return
    rows = [(run["run_id"], run["status"], ago(run["started_at"]), cell(run["task"], 80)) for run in listed]
    table("runs", ("run", "status", "started", "task"), rows, none="no runs of this folder: `agent run` starts one")
    if rows and console.is_terminal:
        console.print(f"in {runs}", style="dim", soft_wrap=True)


def _row_of(folder: Path) -> dict[str, Any]:
    """Return what is shown of a run; a damaged log does not stop the list."""
    task, status = "", "damaged"
    with contextlib.suppress(OSError, FireswarmError):
        events = list(read_events(folder))
        task = next((str(event.payload.get("task", "")) for event in events[:1]), "")
        status = _status_of(events[-1] if events else None)
    return {
        "run_id": folder.name,
        "status": status,
        "started_at": datetime.strptime(folder.name[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC),
        "task": task,
        "folder": str(folder),
    }


def _status_of(last: EventRecord | None) -> str:
    if last is None or last.event_type not in (EventType.RUN_FINISHED, EventType.RUN_FAILED):
        return NOT_ENDED
    return str(last.payload.get("mode") or last.payload.get("reason") or "failed")
