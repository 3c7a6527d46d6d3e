"""Further names of files: a hard link leads to the same content, and no path tells it from the file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from fireswarm.errors import SandboxRefused

MAX_SEARCHED = 1_000_000
"""Entries of a workspace in which the further names of a file are searched for."""

MAX_FILES = 5_000
"""Files of a folder that are looked at for further names."""


def find_other_names(workspace: Path, places: Iterable[Path]) -> list[Path]:
    """Return the further names, in *workspace*, of the files that are *places* or in one of them. Blocks.

    The workspace is searched only if a file has more names than one of those *places*. Raises SandboxRefused for a
    workspace that is too large for that.
    """
    known, left = set[str](), dict[tuple[int, int], int]()
    for place in places:
        for path, found in _files_of(place):
            if found.st_nlink > 1 and path not in known:
                number = found.st_dev, found.st_ino
                left[number] = left.get(number, found.st_nlink) - 1
                known.add(path)
    left = {number: more for number, more in left.items() if more > 0}
    return [Path(path) for path in _search(workspace, left, known)]


def _files_of(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files of a folder, or the one file *place*, without links; at most `MAX_FILES`."""
    waiting, looked = [str(place)], 0
    while waiting and looked < MAX_FILES:
        here = waiting.pop()
        with contextlib.suppress(OSError):
            found = os.lstat(here)
            looked += 1
            if stat.S_ISREG(found.st_mode):
                yield here, found
            elif stat.S_ISDIR(found.st_mode):
                with os.scandir(here) as entries:
                    waiting += [entry.path for entry in entries if not entry.is_symlink()]


def _search(workspace: Path, left: dict[tuple[int, int], int], known: set[str]) -> Iterator[str]:
    """Yield names of the files with these numbers that are not *known*, until none has more."""
    inodes = {inode for _, inode in left}
    waiting, looked = [str(workspace)] if left else [], 0
    while waiting and any(left.values()):
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                looked += 1
                if looked > MAX_SEARCHED:
                    raise SandboxRefused(
                        f"a protected file of {workspace} has a second name, a hard link, which cannot be searched for "
                        f"among more than {MAX_SEARCHED:,} files: work in a folder within it, or remove the link"
                    )
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.inode() in inodes and entry.path not in known:
                    found = entry.stat(follow_symlinks=False)
                    if left.get((found.st_dev, found.st_ino)):
                        left[found.st_dev, found.st_ino] -= 1
                        yield entry.path
