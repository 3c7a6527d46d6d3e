"""List the files of a folder: with git, or by a walk without excluded folders."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from fireswarm import count_noun

from .gitcli import git_output

SILENT_FOLDERS = frozenset({
    ".git", ".hg", ".svn", ".fireswarm", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
    "__pycache__", ".tox", ".nox", ".idea", ".eggs",
})  # fmt: skip
"""Folders that are neither listed nor reported: version control, caches, and the swarm's own state."""

EXCLUDED_FOLDERS = frozenset({".venv", "venv", "node_modules", ".tools", "site-packages", *SILENT_FOLDERS})
"""Folders that are never listed: those above, and virtual environments, installed tools and packages."""


@dataclass
class Listing:
    """The files of a folder, as sorted POSIX paths relative to it, and the omitted entries."""

    method: str
    paths: list[str]
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    notes: list[str] = field(default_factory=list[str])

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count *count* entries that were omitted for *reason*."""
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count


def list_files(root: Path, *, max_files: int) -> Listing:
    """List the regular files below *root*, never following a symbolic link, at most *max_files* of them."""
    listing = _from_git(root)
    if listing is None:
        listing = _from_walk(root, max_files)
    listing.paths.sort()
    listing.leave_out("over_max_files", max(0, len(listing.paths) - max_files))
    del listing.paths[max_files:]
    return listing


def shard_of(path: str, count: int) -> int:
    """Return the shard (of *count*) of a relative path: stable, and independent of the other paths."""
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % count


def in_shard(paths: list[str], index: int, count: int) -> list[str]:
    """Return the paths of shard *index* of *count*; every path belongs to exactly one shard."""
    return [path for path in paths if shard_of(path, count) == index]


def _from_git(root: Path) -> Listing | None:
    raw = git_output(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if not raw:
        return None
    listing = Listing("git", [])
    excluded: set[PurePosixPath] = set()
    for name in sorted({part for part in raw.decode("utf-8", "surrogateescape").split("\0") if part}):
        folder = _excluded_folder(PurePosixPath(name))
        if folder is None:
            _take(root, name, listing)
        elif folder.name not in SILENT_FOLDERS:
            excluded.add(folder)
    listing.leave_out("excluded_folder", len(excluded))
    return listing if listing.paths else None


def _excluded_folder(path: PurePosixPath) -> PurePosixPath | None:
    """Return the topmost excluded folder above *path*, or None."""
    return next((folder for folder in reversed(path.parents) if folder.name in EXCLUDED_FOLDERS), None)


def _from_walk(root: Path, max_files: int) -> Listing:
    listing = Listing("walk", [])

    def unreadable(_error: OSError) -> None:
        listing.leave_out("unreadable_folder")

    for folder, subfolders, names in os.walk(root, onerror=unreadable, followlinks=False):
        here = Path(folder)
        linked = [name for name in subfolders if (here / name).is_symlink()]
        excluded = [name for name in subfolders if name in EXCLUDED_FOLDERS and name not in linked]
        listing.leave_out("symlink", len(linked))
        listing.leave_out("excluded_folder", sum(name not in SILENT_FOLDERS for name in excluded))
        subfolders[:] = sorted(set(subfolders) - set(linked) - set(excluded))
        for name in sorted(names):
            _take(root, (here / name).relative_to(root).as_posix(), listing)
        if len(listing.paths) > 4 * max_files:
            listing.notes.append(
                f"stopped walking after {count_noun(len(listing.paths), 'file')}; raise max_files to see more"
            )
            break
    return listing


def _take(root: Path, name: str, listing: Listing) -> None:
    """Add an entry if it is a regular file with a valid name."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        listing.leave_out("undecodable_name")
        return
    path = root / name
    if path.is_symlink():
        listing.leave_out("symlink")
    elif path.is_file():
        listing.paths.append(name)
    elif path.is_dir():
        listing.leave_out("submodule")
    elif path.exists():
        listing.leave_out("special_file")
    else:
        listing.leave_out("listed_but_missing")
