"""Implementation of ``agent runs``."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fireswarm.cli.shared.options import ago, console, print_json
from fireswarm.cli.shared.tables import cell, table
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.errors import FireswarmError
from fireswarm.runs.sinks.files import read_events, run_folders
from fireswarm.settings.run_folders import kept_runs

NOT_ENDED = "not ended"
"""Status of a run that is in progress, or whose process was killed."""


def print_runs(limit: int, *, as_json: bool) -> None:
    """Print the newest runs of the current folder."""
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
