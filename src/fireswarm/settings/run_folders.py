"""Names in the runs folder of the stand-alone agent, ``logging.jsonl_dir``, and the creation of that folder."""

from __future__ import annotations

import re
from pathlib import Path

RUN_ID = re.compile(r"^\d{8}-\d{6}-[0-9a-f]{8}$")
RUN_ID_GLOB = "-".join(("[0-9]" * 8, "[0-9]" * 6, "[0-9a-f]" * 8))
"""Glob with the same matches as RUN_ID, for programs that take globs."""

CHATS_FOLDER = "chats"
SPEND_FILE = "spend.jsonl"
IGNORE_FILE, IGNORED = ".gitignore", "*\n"
"""Name and content of the file that excludes the runs from git."""


def make_runs_folder(folder: Path) -> None:
    """Create the folder of all runs, ignored by git. An existing folder is not changed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        return
    (folder / IGNORE_FILE).write_text(IGNORED, encoding="utf-8")
