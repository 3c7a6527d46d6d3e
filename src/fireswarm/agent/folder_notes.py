"""The state of the agent's working folder: its repository, and the project's notes for agents."""

from __future__ import annotations

from pathlib import Path

from fireswarm.capabilities.workspace.place import Workspace
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


def describe_folder(folder: Path, home: Path) -> str:
    """Return the state of the repository and the notes for agents, as Markdown.

    The notes count as the user's words only if the user trusts the file's content; otherwise they are material.
    """
    return "\n\n".join(part for part in (_repository(folder), _notes(folder, home)) if part)


def _repository(folder: Path) -> str:
    try:
        told = run_git(folder, "status", "--porcelain", "--branch", timeout_seconds=GIT_SECONDS)
    except (GitFailed, OSError):
        return ""
    branch, *changed = environment_redactor().clean(told.decode("utf-8", "replace")).rstrip("\n").split("\n")
    more = f"\n[{len(changed) - MAX_CHANGED:,} more]" if len(changed) > MAX_CHANGED else ""
    return "\n".join(["# Repository", f"Branch: {branch.removeprefix('## ')}", *changed[:MAX_CHANGED]]) + more


def _notes(folder: Path, home: Path) -> str:
    place = Workspace(folder.resolve())
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
