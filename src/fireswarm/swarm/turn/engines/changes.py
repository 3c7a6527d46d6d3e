"""What a task changed in the repository that it worked in, as an artifact for those who judge or use its work."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import anyio.to_thread

from fireswarm.capabilities.workspace.place import Hides
from fireswarm.contracts.skills.artifact import DIFF, Artifact
from fireswarm.errors import GitFailed
from fireswarm.processes.git import changes_since, head_commit
from fireswarm.redaction import Redactor
from fireswarm.swarm.turn.given.workspace import denied_reads
from fireswarm.swarm.turn.state import Turn

CHANGES = "changes.diff"
"""Name of the artifact."""

MAX_BYTES = 1_000_000


async def note_folder(turn: Turn, folder: Path | None) -> dict[str, Any]:
    """Return the commit and the state of the folder at the first start of the task; {} outside of a repository.

    The next flush stores it: the note costs no request.
    """
    if folder is None or turn.task.is_call or _is_read_only(turn) or not _is_repository(folder):
        return {}

    async def look() -> dict[str, Any]:
        return await anyio.to_thread.run_sync(_state_of, folder, _hides(turn, folder))

    return dict(await turn.journal.steps.step("folder", turn.task.task_id, look, idempotent=True, last=True))


async def publish_changes(turn: Turn, folder: Path | None, began: dict[str, Any], redact: Redactor) -> list[Artifact]:
    """Store what changed in the folder since the task began, and return it as an artifact, or nothing.

    Tasks that planned others have none: the change is of these.
    """
    if folder is None or not began or any(not child.is_call for child in turn.relatives.children):
        return []
    try:
        diff = await anyio.to_thread.run_sync(changes_since, folder, str(began["commit"]), _hides(turn, folder))
    except GitFailed as error:
        turn.journal.note("outputs_left_out", text=f"{CHANGES}: {error}")
        return []
    if not diff or _digest(diff) == began["state"]:
        return []
    text = redact.clean(diff[:MAX_BYTES].decode("utf-8", "replace"))
    if len(diff) > MAX_BYTES:
        text = f"{text.rpartition('\n')[0]}\n[cut: the change has {len(diff):,} bytes]\n"
    content = text.encode()
    uri = await turn.swarm.blobs.put(f"{turn.task.session_hash}/{turn.task.task_id}/{CHANGES}", content)
    return [
        Artifact(
            type=DIFF,
            name=CHANGES,
            summary=f"what changed in {folder.name} since commit {began['commit'][:12]}",
            uri=uri,
            mime="text/x-diff",
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            source_task_id=turn.task.task_id,
        )
    ]


def _is_read_only(turn: Turn) -> bool:
    return turn.task.constraints.read_only or turn.swarm.settings.runtime.profile == "read_only"


def _is_repository(folder: Path) -> bool:
    return any((place / ".git").exists() for place in (folder, *folder.parents))


def _hides(turn: Turn, folder: Path) -> Hides | None:
    denied = denied_reads(turn)
    return denied.hiding(folder) if denied.patterns else None


def _state_of(folder: Path, hides: Hides | None) -> dict[str, Any]:
    try:
        commit = head_commit(folder)
        return {"commit": commit, "state": _digest(changes_since(folder, commit, hides))}
    except GitFailed:
        return {}


def _digest(diff: bytes) -> str:
    return hashlib.sha256(diff).hexdigest()
