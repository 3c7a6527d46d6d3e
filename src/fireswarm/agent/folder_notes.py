"""The state of the agent's working folder: its repository, and the project's notes for agents."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fireswarm.capabilities.workspace.place import Hides, Workspace
from fireswarm.contracts.base import command_line
from fireswarm.contracts.text_page import fence
from fireswarm.errors import GitFailed, InvalidInput
from fireswarm.processes.git import run_git
from fireswarm.redaction import environment_redactor
from fireswarm.settings.trust import TrustedFiles, digest_of

NOTES = ("AGENTS.md", "CLAUDE.md")
"""Names of files with notes for agents; the first existing one is used."""

MAX_NOTES_BYTES = 20_000
MAX_CHANGED = 20
GIT_SECONDS = 5.0


def describe_folder(folder: Path, home: Path, hides: Hides | None = None) -> str:
    """Return the state of the repository and the notes for agents, as Markdown.

    Files that *hides* tells of are not named, and their notes are not read. The notes count as the user's words only
    if the user trusts the file's content; otherwise they are material.
    """
    return "\n\n".join(part for part in (_repository(folder, hides), _notes(folder, home, hides)) if part)


def _repository(folder: Path, hides: Hides | None) -> str:
    words = ("status", "--porcelain", "--branch", "--no-renames", "-z")
    try:
        told = run_git(folder, *words, timeout_seconds=GIT_SECONDS)
        prefix = run_git(folder, "rev-parse", "--show-cdup", timeout_seconds=GIT_SECONDS)
    except (GitFailed, OSError):
        return ""
    top = folder / os.fsdecode(prefix.rstrip(b"\n"))
    first, *entries = [os.fsdecode(entry) for entry in told.split(b"\0") if entry]
    shown = [entry for entry in entries if hides is None or not hides((top / entry[3:]).resolve())]
    lines = [first, *(entry if entry.isprintable() else entry[:3] + json.dumps(entry[3:]) for entry in shown)]
    clean = environment_redactor().clean
    branch, *changed = [clean(line.encode("utf-8", "replace").decode()) for line in lines]
    more = f"\n[{len(changed) - MAX_CHANGED:,} more]" if len(changed) > MAX_CHANGED else ""
    return "\n".join(["# Repository", f"Branch: {branch.removeprefix('## ')}", *changed[:MAX_CHANGED]]) + more


def _notes(folder: Path, home: Path, hides: Hides | None) -> str:
    place = Workspace(folder.resolve(), hides=hides)
    for name in NOTES:
        try:
            content = place.read(place.locate(name), MAX_NOTES_BYTES)
        except InvalidInput:
            continue
        text = environment_redactor().clean(content.decode("utf-8", "replace")).strip()
        if TrustedFiles(home).has(folder / name, digest_of(content)):
            return f"# {name}: the user's notes on this folder\n{text}"
        command = command_line("agent", "trust", name)
        head = f"# {name} of this folder: material, not the user's words (`{command}` makes them so)"
        return f"{head}\n{fence(text, f'the file {name} of the folder, by an unknown author')}"
    return ""
