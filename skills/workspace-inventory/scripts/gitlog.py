"""A folder's history from git: who changed which file when, and two earlier snapshots of the files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .code import measure_code
from .gitcli import git_output
from .kinds import is_code, language_of

FIX_WORDS = re.compile(
    r"\b(fix(e[sd]|ing)?|bug(s|fix|fixes)?|hotfix|regressions?|revert(s|ed)?|crash(es|ed)?|defects?|faults?|"
    r"repairs?|broken|incorrect|wrong(ly)?)\b",
    re.IGNORECASE,
)
NOT_A_FIX = re.compile(r"\b(typos?|lint(er|ing)?|format(ting)?|spelling|whitespace|style|changelog)\b", re.IGNORECASE)

MAX_TOUCHES = 60_000
"""Maximum number of file changes over all commits: about 1 MB of JSON."""

SNAPSHOT_FILES = 1_500
SNAPSHOT_FILE_BYTES = 512_000
SPLITS = (0.5, 0.75)
"""Cuts of the history, as shares of the commits: train before the first cut, evaluate between and after them."""

_MIN_COMMITS_TO_SPLIT = 12


@dataclass
class Commit:
    """One commit: seconds since 1970, whether its subject reads like a fix, and changes ``(path, added, deleted)``."""

    sha: str
    time: int
    author: int
    fix: bool
    touches: list[tuple[str, int, int]]


@dataclass
class History:
    """Git history of a folder; ``commits`` newest first, paths under today's names."""

    head: str = ""
    branch: str = ""
    commits: list[Commit] = field(default_factory=list[Commit])
    splits: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    truncated: bool = False
    shallow: bool = False


def is_fix(subject: str) -> bool:
    """Return True if a commit's subject describes a fix of behavior, not of spelling or layout."""
    return bool(FIX_WORDS.search(subject)) and not NOT_A_FIX.search(subject)


def read_history(place: Path, *, max_commits: int) -> History | None:
    """Read the history of a folder or file, newest *max_commits* commits; None without git or without a commit."""
    root, only = (place, ".") if place.is_dir() else (place.parent, f":(literal){place.name}")
    head = git_output(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if head is None:
        return None
    raw = git_output(
        root, "log", "-z", "--numstat", "-M", "--no-merges", "--no-ext-diff", "--no-textconv", "--relative",
        "--format=%x01%H%x1f%ct%x1f%ae%x1f%s", "-n", str(max_commits + 1), "--", only,
    )  # fmt: skip
    if not raw:
        return None
    history = History(head=head.decode().strip(), branch=_line(root, "rev-parse", "--abbrev-ref", "HEAD"))
    history.shallow = _line(root, "rev-parse", "--is-shallow-repository") == "true"
    renames = _collect(raw, history, max_commits)
    if only == "." and len(history.commits) >= _MIN_COMMITS_TO_SPLIT:
        cache: dict[str, tuple[int, int | None]] = {}
        history.splits = [_snapshot(root, history, share, renames, cache) for share in SPLITS]
    return history


def _line(root: Path, *arguments: str) -> str:
    return (git_output(root, *arguments) or b"").decode("utf-8", "replace").strip()


def _collect(raw: bytes, history: History, max_commits: int) -> list[tuple[int, str, str]]:
    """Fill ``history.commits``; return the renames as ``(commit's position, old path, today's path)``."""
    authors: dict[str, int] = {}
    aliases: dict[str, str] = {}
    renames: list[tuple[int, str, str]] = []
    touches = 0
    for header, changes in _parse(raw.decode("utf-8", "replace")):
        sha, seconds, author, subject = header
        if len(history.commits) == max_commits or touches > MAX_TOUCHES:
            history.truncated = True
            break
        files: list[tuple[str, int, int]] = []
        for added, deleted, old, new in changes:
            today = aliases.get(new, new)
            if old:
                aliases[old] = today
                renames.append((len(history.commits), old, today))
            files.append((today, added, deleted))
        touches += len(files)
        number = authors.setdefault(author.lower(), len(authors))
        history.commits.append(Commit(sha, int(seconds), number, is_fix(subject), files))
    return renames


def _parse(text: str) -> Iterator[tuple[list[str], list[tuple[int, int, str, str]]]]:
    """Yield each commit's header fields and its ``(added, deleted, old path or "", path)``."""
    for chunk in text.split("\x01")[1:]:
        head, _, rest = chunk.partition("\0")
        header = head.split("\x1f", 3)
        if len(header) == 4 and header[1].isdigit():
            yield header, list(_changes(rest.lstrip("\n").split("\0")))


def _changes(tokens: list[str]) -> Iterator[tuple[int, int, str, str]]:
    position = 0
    while position < len(tokens):
        parts = tokens[position].lstrip("\n").split("\t", 2)
        position += 1
        if len(parts) != 3:
            continue
        added, deleted = (int(part) if part.isdigit() else 0 for part in parts[:2])
        if parts[2]:
            yield added, deleted, "", parts[2]
        elif position + 1 < len(tokens):
            yield added, deleted, tokens[position], tokens[position + 1]
            position += 2


def _snapshot(
    root: Path, history: History, share: float, renames: list[tuple[int, str, str]], cache: dict[str, Any]
) -> dict[str, Any]:
    """Return lines and complexity of the code files at the commit before which *share* of the commits lie."""
    count = len(history.commits)
    at = count - max(1, round(count * share))
    commit = history.commits[at]
    aliases = {old: today for position, old, today in renames if position < at}
    files: dict[str, list[int | None]] = {}
    blobs: list[tuple[str, str]] = []
    listed = git_output(root, "ls-tree", "-r", "-z", "-l", commit.sha, "--", ".") or b""
    for entry in listed.decode("utf-8", "replace").split("\0"):
        meta, _, path = entry.partition("\t")
        fields = meta.split()
        if len(fields) == 4 and fields[1] == "blob" and fields[0] != "120000":
            today = aliases.get(path, path)
            files[today] = [None, None]
            if is_code(language_of(path)) and fields[3].isdigit() and int(fields[3]) <= SNAPSHOT_FILE_BYTES:
                blobs.append((fields[2], today))
    blobs = sorted(blobs, key=lambda pair: pair[1])[:SNAPSHOT_FILES]
    _measure_blobs(root, blobs, cache)
    for blob, path in blobs:
        if blob in cache:
            files[path] = list(cache[blob])
    return {"commit": commit.sha, "time": commit.time, "files": dict(sorted(files.items()))}


def _measure_blobs(root: Path, blobs: list[tuple[str, str]], cache: dict[str, Any]) -> None:
    wanted = {blob: path for blob, path in blobs if blob not in cache}
    if not wanted:
        return
    order = sorted(wanted)
    raw = git_output(root, "cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in order).encode())
    position = 0
    for blob in order:
        end = (raw or b"").find(b"\n", position)
        header = (raw or b"")[position:end].split()
        if end < 0 or raw is None:
            return
        position = end + 1
        if len(header) != 3:
            continue
        size = int(header[2])
        text = raw[position : position + size].decode("utf-8", "replace")
        position += size + 1
        cache[blob] = (len(text.splitlines()), measure_code(text, language_of(wanted[blob])).complexity)
