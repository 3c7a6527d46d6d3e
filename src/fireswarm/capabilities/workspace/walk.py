"""The files below a folder of the workspace, without those that other programs or the agent itself keep there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fireswarm.capabilities.workspace.place import OWN_FOLDER
from fireswarm.settings.run_folders import CHATS_FOLDER, IGNORE_FILE, IGNORED, RUN_ID, RUN_ID_GLOB, SPEND_FILE

SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".tools", ".venv", "venv", OWN_FOLDER, ".hg", ".svn"})
SKIPPED_GLOBS = SKIPPED | {RUN_ID_GLOB}


def walk_files(start: Path) -> Iterator[Path]:
    """Yield the files below *start* in order. Links are not followed.

    Runs of the agent are left out, and what it keeps next to them: a search would find the call that searches. They are
    walked if *start* is in one.
    """
    for where, folders, files in os.walk(start):
        kept = [name for name in folders if name not in SKIPPED and not RUN_ID.match(name)]
        if any(map(RUN_ID.match, folders)):
            kept = [name for name in kept if name != CHATS_FOLDER]
            files = [name for name in files if not _belongs_to_runs(Path(where, name))]
        folders[:] = sorted(kept)
        yield from (Path(where, name) for name in sorted(files))


def _belongs_to_runs(file: Path) -> bool:
    """Return True for a file that the agent keeps in the folder of its runs."""
    return file.name == SPEND_FILE or (file.name == IGNORE_FILE and file.lstat().st_size == len(IGNORED))
