"""Sessions of a chat with the stand-alone agent; each session is one run."""

from __future__ import annotations

import re
from pathlib import Path

from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.llm.tokens import estimate_tokens, prompt_limit
from fireswarm.runs.sinks.files import read_events, run_folder
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.run_folders import CHATS_FOLDER

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


def session_file(folder: Path, name: str, suffix: str) -> Path:
    """Return the path of a session's file. Raises InvalidInput for a bad name."""
    if not NAME.match(name):
        raise InvalidInput(f"--session {name!r}: use letters, digits, dot, underscore and hyphen")
    return folder / f"{name}{suffix}"


def run_of_session(runs: Path, name: str) -> Path | None:
    """Return the folder of the session's run, or None. Raises InvalidInput for a bad name."""
    file = session_file(runs / CHATS_FOLDER, name, ".run")
    try:
        return run_folder(runs, file.read_text(encoding="utf-8").strip()) if file.is_file() else None
    except (NotFound, InvalidInput, UnicodeDecodeError):
        return None


def has_ended(run: Path) -> bool:
    """Return False for a run that was stopped during its work, or whose process was killed."""
    last = next(reversed(list(read_events(run))), None)
    if last is None or last.event_type not in (EventType.RUN_FINISHED, EventType.RUN_FAILED):
        return False
    return last.payload.get("reason") != "interrupted"


def too_long(message: str, model: ModelSettings) -> str:
    """Return why a message is too long, or "": a longer message would stay in the conversation and end it."""
    tokens, limit = estimate_tokens(message), prompt_limit(model) // 2
    if tokens <= limit:
        return ""
    return (
        f"The message has about {tokens:,} tokens, and this model takes {limit:,} at once: write it to a file, and "
        f"name the file."
    )
