"""Paths of the session file system: their canonical form, and the ranges of paths below a folder."""

from __future__ import annotations

import unicodedata
from fnmatch import fnmatchcase

from fireswarm.errors import InvalidInput
from fireswarm.redaction import environment_redactor

MAX_PATH_BYTES = 1_024
"""An indexed value has at most 1,500 bytes in Firestore."""

MAX_PATH_CHARS = 4_096
"""A longer path is refused before it is brought into its canonical form."""


def normal(path: str) -> str:
    """Return the canonical form of *path*: absolute, without empty parts. Raises InvalidInput for an invalid path."""
    if len(path) > MAX_PATH_CHARS:
        raise InvalidInput(f"the path has {len(path):,} characters; {MAX_PATH_CHARS:,} are allowed")
    text = unicodedata.normalize("NFC", path)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise InvalidInput(f"the path {path!r} contains control characters")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise InvalidInput(f"the path {path!r} contains '..': give an absolute path, such as /docs/readme.txt")
    made = "/" + "/".join(parts)
    if len(made.encode()) > MAX_PATH_BYTES:
        raise InvalidInput(f"the path has {len(made.encode()):,} bytes; {MAX_PATH_BYTES:,} are allowed")
    if environment_redactor().text(made) != made:
        raise InvalidInput("the path contains what looks like a secret: choose another name")
    return made


def file_path(path: str) -> str:
    """Return the canonical form of the path of a file. Raises InvalidInput if it names a directory."""
    place = normal(path)
    if place == "/" or path.endswith("/"):
        raise InvalidInput(f"{path!r} is a directory: name a file in it")
    return place


def below(folder: str) -> tuple[str, str]:
    """Return the range of paths below a folder: "0" is the character after the slash."""
    prefix = folder.rstrip("/") + "/"
    return prefix, prefix[:-1] + "0"


def after(path: str) -> str:
    """Return the position after a path; paths contain no control characters."""
    return path + "\x01"


def parents(path: str) -> list[str]:
    """Return the folders above a path, outermost first."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def fits(path: str, pattern: str) -> bool:
    """Return True if the path, with or without its first slash, or its last part matches the pattern."""
    return fnmatchcase(path, pattern) or fnmatchcase(path[1:], pattern) or fnmatchcase(path.rpartition("/")[2], pattern)


def range_of(pattern: str) -> tuple[str, str]:
    """Return the range of paths that a pattern can match: a pattern from the root names a folder."""
    plain = pattern[: min((pattern.find(char) for char in "*?[" if char in pattern), default=len(pattern))]
    return below(plain.rpartition("/")[0]) if plain.startswith("/") else below("/")
