"""Hashes of a skill's files: the version that a run used, and the whole that an approval is for."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MAX_FILES = 1_000
MAX_FILE_BYTES = 5_000_000
"""Limits of what is hashed as a version. Of a larger file, the size is."""

PART_BYTES = 1_000_000


def content_hash(folder: Path) -> str:
    """Return a hash of the names and contents of a skill's files: SKILL.md, its scripts, and what they read.

    Files whose names begin with a full stop, and compiled code, are not part of it. Unreadable files count by name.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*"))[:MAX_FILES]:
        name = path.relative_to(folder).as_posix()
        if any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts):
            continue
        try:
            if path.is_file():
                size = path.stat().st_size
                content = path.read_bytes() if size <= MAX_FILE_BYTES else str(size).encode()
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
        except OSError:
            digest.update(f"{name}\0unreadable".encode())
    return digest.hexdigest()


def whole_hash(folder: Path) -> str:
    """Return a hash of all that code in a folder can load: each file, hidden, compiled or large, and where links lead.

    Blocks. Unreadable files count by name.
    """
    digest = hashlib.sha256()
    for path in _every_file(folder, set()):
        try:
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
            digest.update(_hash_of_file(path))
        except OSError:
            digest.update(b"unreadable")
    return digest.hexdigest()


def _every_file(folder: Path, seen: set[str]) -> Iterator[Path]:
    """Yield what is in a folder, in order, also below links to folders; each folder once."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        yield folder
        return
    for entry in entries:
        if entry.is_dir():
            yield from _every_file(entry, seen)
        else:
            yield entry


def _hash_of_file(path: Path) -> bytes:
    """Return the hash of a regular file, and of the kind of any other: reading a pipe would not end."""
    if not stat.S_ISREG(path.stat().st_mode):
        return b"special"
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            digest.update(part)
    return digest.digest()
