"""The files below a folder of the workspace, without those that other programs or the agent itself keep there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from fireswarm.processes.confinement.paths.names import OWN_FOLDER
from fireswarm.settings.run_folders import IGNORE_FILE, IGNORED, RUN_ID, RUN_ID_GLOB, state_home, swarm_folders
from fireswarm.skills.file_walk import walk_folders

SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".tools", ".venv", "venv", OWN_FOLDER, ".hg", ".svn"})
SKIPPED_GLOBS = SKIPPED | {RUN_ID_GLOB}


def walk_files(start: Path, top: Path, left_out: Callable[[str], None] | None = None) -> Iterator[Path]:
    """Yield the files below *start* in order. Links are not followed.

    The state of the agent and of swarms, and the logs of runs, are left out: a search would find the call that
    searches. Logs are walked if *start* is in one. *left_out* gets what ``.gitignore`` files from *top* down name;
    without it, they do not count.
    """
    kept = {state_home(), *swarm_folders()}
    for where, folders, files in walk_folders(start, top=top, skips=SKIPPED.__contains__, left_out=left_out):
        if any(map(RUN_ID.match, folders)):
            folders[:] = [name for name in folders if not RUN_ID.match(name)]
            files = [name for name in files if not _belongs_to_runs(where / name)]
        folders[:] = [name for name in folders if where / name not in kept]
        yield from (where / name for name in files)


def _belongs_to_runs(file: Path) -> bool:
    """Return True for a file that the agent keeps in the folder of its runs."""
    return file.name == IGNORE_FILE and file.lstat().st_size == len(IGNORED)
