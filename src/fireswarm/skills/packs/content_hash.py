"""The hash of a skill's files, by which a run says which version of the skill it used."""

from __future__ import annotations

import hashlib
from pathlib import Path

MAX_FILES = 1_000
MAX_FILE_BYTES = 5_000_000
"""Limits of what is hashed. Of a larger file, the size is."""

HASH_CHARS = 16


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
    return digest.hexdigest()[:HASH_CHARS]
