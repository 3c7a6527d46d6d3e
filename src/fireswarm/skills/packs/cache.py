"""Cache of parsed skills between starts.

One JSON file for each set of skill folders. A record is valid only if the SKILL.md has the same modification time, size
and inode, and its folders have the same modification times. A file with unexpected content is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fireswarm.settings.load import home_folder
from fireswarm.settings.packaged import __version__

FORMAT = f"fireswarm-skills/{__version__}/1"
"""Incremented when the content of a record changes; a file of another format is rebuilt."""

MAX_CACHE_BYTES = 500_000_000
"""Maximum size of a cache file of this module: 25,000 skills with long descriptions take about 60 MB."""

LEAST_CACHED = 200
"""Number of skills below which reading them takes less time than a cache file (0.3 ms per skill)."""

Record = list[Any]
Stamp = list[int]


def default_cache(roots: Iterable[Path]) -> Path:
    """Path of the cache for *roots*, in the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache")
    key = "\0".join(str(root) for root in roots)
    return base / "fireswarm" / f"skills-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def changed_at(folder: str) -> int:
    """Modification time of *folder* in nanoseconds since 1970; 0 if it does not exist."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - called for each of 20,000 folders
    except OSError:
        return 0


class CatalogCache:
    """Records by the path of their SKILL.md."""

    def __init__(self, path: Path | None, known: dict[str, Record]) -> None:
        self._path = path
        self._known = known
        self._kept: dict[str, Record] = {}
        self._changed = False

    @classmethod
    def load(cls, path: Path | None) -> CatalogCache:
        """Load the file; start empty if it is missing, damaged, of another version or of another user."""
        return cls(path, _read(path) if path is not None else {})

    def get(self, file: str, stamp: Stamp) -> Record | None:
        """Return the record of an unchanged skill, or None."""
        entry = self._known.get(file)
        try:
            if entry is None or entry[0] != stamp or any(changed_at(path) != at for path, at in entry[1]):
                return None
            record = entry[2]
        except (TypeError, ValueError, IndexError, KeyError):
            return None
        if not isinstance(record, list):
            return None
        self._kept[file] = entry
        return record

    def put(self, file: str, stamp: Stamp, watched: Iterable[str], record: Record) -> None:
        """Add a record; it is valid until *file* or one of the *watched* folders changes."""
        self._kept[file] = [stamp, [[path, changed_at(path)] for path in watched], record]
        self._changed = True

    def save(self) -> None:
        """Write the records used this time, if anything changed. A folder without write permission is ignored."""
        if self._path is None or len(self._kept) < LEAST_CACHED:
            return
        if not (self._changed or len(self._kept) != len(self._known)):
            return
        text = json.dumps({"format": FORMAT, "skills": self._kept}, ensure_ascii=False, separators=(",", ":"))
        with contextlib.suppress(OSError, UnicodeEncodeError):
            write_atomically(self._path, text.encode("utf-8"))


def write_atomically(path: Path, data: bytes) -> None:
    """Replace *path* atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def is_ours(path: Path) -> bool:
    """Return True if only this user can write to the plain file *path* (POSIX; elsewhere: if it is a file)."""
    status = path.lstat()
    if not path.is_file() or path.is_symlink() or status.st_size > MAX_CACHE_BYTES:
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _read(path: Path) -> dict[str, Record]:
    try:
        if not is_ours(path):
            return {}
        content: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("skills"), dict):
        return {}
    return content["skills"]
