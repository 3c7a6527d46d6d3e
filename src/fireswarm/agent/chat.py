"""A chat with the stand-alone agent: earlier tasks and answers, stored between tasks and between starts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.run_folders import CHATS_FOLDER
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.llm.tokens import estimate_tokens, prompt_limit
from fireswarm.mind import Conclusion
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import ModelSettings
from fireswarm.swarm.records.run_files import read_events, run_folder

REMEMBERED_TURNS = 20
REMEMBERED_CHARS = 8_000
"""Characters of earlier tasks in a prompt, newest first."""

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


def session_file(folder: Path, name: str, suffix: str) -> Path:
    """Return the path of a session's file. Raises InvalidInput for a bad name."""
    if not NAME.match(name):
        raise InvalidInput(f"--session {name!r}: use letters, digits, dot, underscore and hyphen")
    return folder / f"{name}{suffix}"


def run_of_session(runs: Path, name: str) -> Path | None:
    """Return the folder of the run that a session goes on with, or None. Raises InvalidInput for a bad name."""
    file = session_file(runs / CHATS_FOLDER, name, ".run")
    try:
        return run_folder(runs, file.read_text(encoding="utf-8").strip()) if file.is_file() else None
    except (NotFound, InvalidInput, UnicodeDecodeError):
        return None


def has_ended(run: Path) -> bool:
    """Return False for a run that was stopped in its work, or whose process was killed."""
    last = next(reversed(list(read_events(run))), None)
    if last is None or last.event_type not in (EventType.RUN_FINISHED, EventType.RUN_FAILED):
        return False
    return last.payload.get("reason") != "interrupted"


def too_long(message: str, model: ModelSettings) -> str:
    """Return why a message cannot be said, or "": it would stay in the conversation, and end it."""
    tokens, limit = estimate_tokens(message), prompt_limit(model) // 2
    if tokens <= limit:
        return ""
    return (
        f"The message has about {tokens:,} tokens, and this model takes {limit:,} at once: write it to a file, "
        "and name the file."
    )


@dataclass(slots=True)
class Chat:
    """One conversation, stored in ``<folder>/<name>.jsonl`` with one line per task."""

    path: Path
    redact: Redactor = field(default_factory=Redactor)
    turns: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path, name: str, redact: Redactor | None = None) -> Chat:
        """Open or start a conversation. *redact* removes secrets from its file. Raises InvalidInput for a bad name."""
        path = session_file(folder, name, ".jsonl")
        turns: list[dict[str, Any]] = []
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            try:
                turns.append(json.loads(line))
            except ValueError:
                continue  # a line cut off by a crash
        return cls(path, redact or Redactor(), [turn for turn in turns if isinstance(turn, dict)])

    def add(self, task: str, conclusion: Conclusion) -> None:
        """Store a task and its conclusion."""
        artifacts = [item.uri for output in conclusion.outputs for item in output.artifacts if item.uri]
        record = {"task": task, "ending": conclusion.status.value, "answer": conclusion.answer, "artifacts": artifacts}
        turn = self.redact.value(record)
        self.turns.append(turn)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            file.seek(max(0, file.tell() - 1))
            cut = b"\n" if file.read(1) not in (b"\n", b"") else b""  # after a crash, the last line may lack its end
            file.write(cut + json.dumps(turn, ensure_ascii=False).encode() + b"\n")

    def material(self) -> str:
        """Return earlier tasks for the prompt: as many of the newest as fit into REMEMBERED_CHARS."""
        turns: list[str] = []
        room = REMEMBERED_CHARS
        for turn in reversed(self.turns[-REMEMBERED_TURNS:]):
            text = json.dumps(turn, ensure_ascii=False)
            if len(text) > room and turns:
                break
            if len(text) > room:
                text = f"{text[:room]} [cut]"
            room -= len(text)
            turns.insert(0, text)
        return "\n".join(["# Earlier in this conversation", *turns]) if turns else ""
