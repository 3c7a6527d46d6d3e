"""Target of an objective: the folder or file it names, and keywords for recall."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from fireswarm import SkillRequest

_QUOTED = re.compile(r"""["'`]([^"'`]{2,400})["'`]""")
_ABSOLUTE = re.compile(r"(?:(?<=\s)|^)((?:~|/|file:///)[^\s,;:!?\"'`]{1,400})")
_WORD = re.compile(r"[^\W\d_][^\W_]{2,29}")
_PLAIN = frozenset(
    {"about", "and", "are", "for", "from", "into", "its", "that", "the", "their", "them", "then", "this", "what",
     "which", "with", "write", "make", "most", "likely", "please", "find", "show", "tell", "give"}
)  # fmt: skip
_CSV_SUFFIXES = frozenset({".csv", ".tsv"})
MOST_KEYWORDS = 12


@dataclass(frozen=True)
class Target:
    """An existing folder or file; ``csv`` is the table in it if there is exactly one."""

    path: Path
    kind: Literal["folder", "csv", "file"]
    csv: Path | None
    candidates: tuple[str, ...] = ()

    @property
    def bucket(self) -> str:
        """Bucket of facts about the target; the scout and the predictors use the same rule."""
        return bucket_of(self.path)


class TargetMissing(Exception):
    """The given path does not exist; the message names it."""


def bucket_of(path: Path) -> str:
    """``folder:`` or ``file:`` and the beginning of the hash of the real path."""
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return ("folder:" if path.is_dir() else "file:") + digest


def find_target(request: SkillRequest) -> Target | None:
    """The target given as an answer, in the context, as an attachment, or named in the objective."""
    context, objective = request.context, request.objective
    for given in (request.answers.get("path"), context.get("path"), context.get("csv")):
        if given:
            return _at(str(given), required=True)
    for attachment in request.attachments:
        if attachment.uri.startswith(("file://", "/")):
            return _at(attachment.uri, required=True)
    for named in [*_QUOTED.findall(objective), *_ABSOLUTE.findall(objective)]:
        if named.startswith(("~", "/", "file:///")):
            target = _at(named.rstrip(".)"), required=False)
            if target is not None:
                return target
    return None


def keywords_of(objective: str, target: Target | None) -> list[str]:
    """Return the words for recalling facts: the bucket, the target's name, and the important words of the objective."""
    words = [word for word in _WORD.findall(objective.lower()) if word not in _PLAIN]
    first = [] if target is None else [target.bucket, target.path.name.lower()]
    return list(dict.fromkeys([*first, *words]))[:MOST_KEYWORDS]


def _at(given: str, *, required: bool) -> Target | None:
    if given.startswith("file://"):
        given = unquote(urlsplit(given).path)
    path = Path(os.path.realpath(Path(given).expanduser()))
    if path.is_dir():
        tables = sorted(entry for entry in path.iterdir() if entry.suffix.lower() in _CSV_SUFFIXES and entry.is_file())
        only = tables[0] if len(tables) == 1 else None
        return Target(path, "folder", only, tuple(table.name for table in tables[:20]))
    if path.is_file():
        is_table = path.suffix.lower() in _CSV_SUFFIXES
        return Target(path, "csv" if is_table else "file", path if is_table else None)
    if required:
        raise TargetMissing(f"There is nothing at {given}.")
    return None
