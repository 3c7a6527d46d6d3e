"""What a task changed in the repository that it worked in, as an artifact for those who judge or use its work."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio.to_thread

from fireswarm.capabilities.workspace.place import Hides
from fireswarm.contracts.skills.artifact import DIFF, Artifact
from fireswarm.errors import GitFailed
from fireswarm.processes.git import run_git
from fireswarm.redaction import Redactor
from fireswarm.swarm.turn.given.workspace import denied_reads
from fireswarm.swarm.turn.state import Turn

CHANGES = "changes.diff"
"""Name of the artifact."""

MAX_BYTES = 1_000_000


MAX_LEFT_OUT = 500
"""Files that a diff leaves out, each a word of the command."""

_OWN_FILES = (".", ":(exclude).fireswarm")


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


def head_commit(folder: Path) -> str:
    """Return the commit of the folder's repository; the empty tree before its first one. Raises GitFailed."""
    try:
        return run_git(folder, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    except GitFailed:
        run_git(folder, "rev-parse", "--git-dir")
        return run_git(folder, "hash-object", "-t", "tree", "--stdin").decode().strip()


def changes_since(folder: Path, commit: str, hides: Callable[[Path], bool] | None = None) -> bytes:
    """Return what changed in *folder* since a commit as a unified diff, also new files that git does not ignore.

    What *hides* tells of is left out. Nothing is written to the repository: its index is copied, and new objects go to
    a temporary folder. The copy keeps the index's time: git reads again what was changed in the second in which the
    index was written. Raises GitFailed.
    """
    own, objects = (_git_path(folder, name) for name in ("index", "objects"))
    with TemporaryDirectory(prefix="fireswarm-index-") as place:
        index = Path(place) / "index"
        if own.is_file():
            shutil.copy2(own, index)
        environment = {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": place,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        run = partial(run_git, folder, writes_to=Path(place))
        listed = run("ls-files", "--others", "--exclude-standard", "-z", "--", *_OWN_FILES)
        new = [name for name in listed.split(b"\0") if name and not name.endswith(b"/")]  # no repositories in it
        new = [name for name in new if hides is None or not hides(folder / os.fsdecode(name))]
        if new:
            literal = environment | {"GIT_LITERAL_PATHSPECS": "1"}
            words = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
            run(*words, stdin=b"\0".join(new), environment=literal)
        words = ("diff", "--no-color", "--relative", "--no-renames")
        left_out: list[str] = []
        if hides is not None:
            listed = run(*words, "--name-only", "-z", commit, "--", *_OWN_FILES, environment=environment)
            names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
            left_out = [f":(exclude,literal){name}" for name in names if hides(folder / name)]
            if len(left_out) > MAX_LEFT_OUT:
                raise GitFailed(f"more than {MAX_LEFT_OUT:,} changed files may not be read: ignore their folder in git")
        return run(*words, commit, "--", *_OWN_FILES, *left_out, environment=environment)


def _git_path(folder: Path, name: str) -> Path:
    """Return the path of a file of git's own."""
    return (folder / os.fsdecode(run_git(folder, "rev-parse", "--git-path", name).rstrip(b"\n"))).resolve()
