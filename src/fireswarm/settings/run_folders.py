"""Names in the runs folder of the stand-alone agent, ``logging.jsonl_dir``, and the creation of folders of state."""

from __future__ import annotations

import re
from pathlib import Path

RUN_ID = re.compile(r"^\d{8}-\d{6}-[0-9a-f]{8}$")
RUN_ID_GLOB = "-".join(("[0-9]" * 8, "[0-9]" * 6, "[0-9a-f]" * 8))
"""Glob with the same matches as RUN_ID, for programs that take globs."""

CHATS_FOLDER = "chats"
SPEND_FILE = "spend.jsonl"
IGNORE_FILE, IGNORED = ".gitignore", "*\n"
"""Name and content of the file that excludes a folder from git."""

STATE_FOLDER = ".fireswarm"
"""Folder of the store, the blobs, the logs and the work of a swarm, in the folder of its settings."""


def make_state_folder(folder: Path) -> None:
    """Create a folder and its parents. A new STATE_FOLDER above it, or it itself, is private and ignored by git."""
    for above in reversed((folder, *folder.parents)):
        if above.name == STATE_FOLDER:
            _make_ignored(above, 0o700)
    folder.mkdir(parents=True, exist_ok=True)


def make_runs_folder(folder: Path) -> None:
    """Create the folder of all runs, ignored by git. An existing folder is not changed."""
    _make_ignored(folder, 0o777)


def _make_ignored(folder: Path, mode: int) -> None:
    """Create a folder that git ignores. In an existing one, what a person removed or wrote is not changed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode)
    except FileExistsError:
        return
    (folder / IGNORE_FILE).write_text(IGNORED, encoding="utf-8")
