"""Shared parts of the commands: options, settings, running async code, tables and JSON."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.text import Text

from fireswarm.cli.shared.console import json_text, make_console
from fireswarm.contracts.base import count_noun
from fireswarm.errors import InvalidInput
from fireswarm.processes.startup import loop_options, require_threads, run_loop
from fireswarm.settings import Settings, load_settings

Root = Annotated[Path, typer.Option("--root", help="Folder with swarm.yaml, roles/, mailbox/ and skills/.")]
StoreUri = Annotated[
    str | None, typer.Option("--store", help="embedded, memory, firelite://HOST:PORT or firestore.", metavar="URI")
]
Project = Annotated[str | None, typer.Option("--project", help="Google Cloud project; implies --store firestore.")]
Session = Annotated[str | None, typer.Option("--session", help="Session name; sessions share nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Limit = Annotated[
    int, typer.Option("--limit", min=1, max=1000, help="Maximum number of documents to show, newest first.")
]

console = make_console()
errors = make_console(stderr=True)

COMMAND_THREADS = 8
"""Threads of a command that is connected to a store, as measured: its own, gRPC's and those of asyncio."""

STYLES = {
    "done": "green",
    "completed": "green",
    "in_progress": "cyan",
    "working": "cyan",
    "queued": "blue",
    "idle": "blue",
    "blocked": "yellow",
    "canceled": "dim",
    "stopped": "dim",
    "error": "red",
    "timeout": "red",
    "dead_letter": "red",
}


def settings_for(
    root: Path, store: str | None, project: str | None = None, session: str | None = None, **overrides: Any
) -> Settings:
    """Load settings from the file, the environment and a command's options."""
    values: dict[str, Any] = {"store.uri": store, "store.project": project, "session": session, **overrides}
    if project and not store:
        values["store.uri"] = "firestore"
    return load_settings(root, overrides=values)


def board_settings(root: Path, store: str | None, project: str | None = None) -> Settings:
    """Load settings for a command that reads the board or acts on tasks.

    An edit of the file that the user has not trusted yet does not hinder it: it is not in force, which is said.
    """
    values: dict[str, Any] = {"store.uri": store or ("firestore" if project else None), "store.project": project}
    return load_settings(root, overrides=values, on_untrusted=lambda note: errors.print(note, style="yellow"))


def run_async[T](call: Callable[[], Awaitable[T]]) -> T:
    """Run an async command to its end."""
    require_threads(COMMAND_THREADS)
    return run_loop(call, options=loop_options())


def print_json(value: Any) -> None:
    """Print contracts, timestamps and enums as JSON on standard output."""
    sys.stdout.write(json_text(value, _jsonable) + "\n")


def _jsonable(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return str(value)


def style_status(word: str) -> Text:
    """Return a status with its color."""
    return Text(word, STYLES.get(word, ""))


def ago(moment: datetime | None) -> str:
    """Return the time since *moment*, in the largest unit that fits."""
    if moment is None:
        return "-"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for limit, unit, size in ((90, "s", 1), (5400, "min", 60), (129_600, "h", 3600)):
        if abs(seconds) < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def one_of(value: str | None, option: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that *value* is, in any form in which it is printed: ``dead-letter``, ``Dead letter``.

    Raises InvalidInput for another word, and names a close one.
    """
    words = list(allowed)
    if value is None:
        return None
    spelled = re.sub(r"[\s-]+", "_", value.strip().lower())
    if spelled in words:
        return spelled
    near = difflib.get_close_matches(spelled, words, n=1)
    hint = f"did you mean {near[0]}? All: " if near else "use one of "
    raise InvalidInput(f"{option} {value!r}: {hint}{', '.join(words)}")


def suggest_role(role: str | None, known: Iterable[str]) -> None:
    """Raise InvalidInput if nothing was found for a *role* that no role card has."""
    names = sorted(known)
    if role is not None and role not in names:
        near = difflib.get_close_matches(role.lower(), names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
        raise InvalidInput(f"--role {role!r}: nothing has this role; {hint}")


def pairs(values: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Parse ``key=value`` options; values that are valid JSON are parsed."""
    found: dict[str, Any] = {}
    for item in values or ():
        key, mark, text = item.partition("=")
        if not mark or not key:
            raise typer.BadParameter(f"{item!r} is not key=value", param_hint=option)
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found


def usage_line(usage: Mapping[str, int]) -> str:
    """Format billed operations."""
    return ", ".join(count_noun(usage.get(f"{kind}s", 0), kind) for kind in ("read", "write", "delete"))
