"""Find keywords in text files. Runs by itself: ``python search_keywords.py PATH -k word``; standard library only."""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 2_000_000
SNIFF_BYTES = 8_192
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
MAX_FILES = 20_000
MAX_LIMIT = 5_000
MAX_LINE_CHARS = 500
"""Bounds of what is read (bytes a file, files), extracted (hits), and shown (characters of a line)."""

SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "site-packages"})
SECRET = re.compile(r"\.env(\..+)?|.*\.(pem|key|p12|pfx)|id_(rsa|dsa|ecdsa|ed25519)|credentials(\..+)?|\.netrc", re.I)
"""Files that usually hold secrets are never read."""


@dataclass(frozen=True)
class Hit:
    """A line that matches, with the lines around it."""

    path: str
    line: int
    keyword: str
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass
class LeftOut:
    """Names of the files that were not read, by the reason."""

    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def note(self, reason: str, name: str) -> None:
        """Add a file."""
        self.names.setdefault(reason, []).append(name)

    def counts(self) -> dict[str, int]:
        """Number of files by reason."""
        return {reason: len(names) for reason, names in sorted(self.names.items())}

    def phrases(self, most: int) -> list[str]:
        """Number, reason and the first names, of each reason."""
        return [
            f"{len(names)} {reason} ({', '.join(names[:most])}{', ...' if len(names) > most else ''})"
            for reason, names in sorted(self.names.items())
        ]

    def sentence(self, most: int = 3) -> str:
        """A sentence for a summary, or nothing."""
        return f" Left out: {'; '.join(self.phrases(most))}." if self.names else ""

    def section(self, most: int = 20) -> list[str]:
        """Lines of Markdown, or none."""
        return ["## Left out", "", *(f"- {phrase}" for phrase in self.phrases(most)), ""] if self.names else []


@dataclass
class Found:
    """All hits counted, the first ones extracted. ``counts``: hits by keyword; ``files``: hits by file."""

    hits: list[Hit] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    searched: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)


def pattern_of(keywords: Sequence[str], regex: str | None = None) -> re.Pattern[str]:
    """One expression for all keywords, as whole words; ValueError when there is nothing to look for."""
    if regex:
        try:
            return re.compile(regex, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"invalid regular expression {regex!r}: {error}") from error
    wanted = sorted({word.strip() for word in keywords if word.strip()}, key=len, reverse=True)
    if not wanted:
        raise ValueError("there is no keyword to look for")
    parts = [r"\s+".join(re.escape(part) for part in word.split()) for word in wanted]
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE)


def search(paths: Sequence[Path], pattern: re.Pattern[str], *, around: int = 1, limit: int = 200) -> Found:
    """Search files and folders in order of path."""
    found = Found()
    for place in paths:
        for file in files_of(place, found.left_out):
            name, content = name_of(file, place), content_of(file)
            if isinstance(content, str):
                found.left_out.note(content, name)
                continue
            found.searched += 1
            lines = content.decode("utf-8-sig", "replace").splitlines()
            _search_lines(name, lines, pattern, found, around, limit)
    return found


def _search_lines(
    name: str, lines: Sequence[str], pattern: re.Pattern[str], found: Found, around: int, limit: int
) -> None:
    for number, line in enumerate(lines):
        matches = [match[0] for match in pattern.finditer(line) if match[0].strip()]
        for word in dict.fromkeys(" ".join(match.lower().split()) for match in matches):
            found.counts[word] += 1
            found.files[name] += 1
            if len(found.hits) < limit:
                before = tuple(map(_clip, lines[max(0, number - around) : number]))
                after = tuple(map(_clip, lines[number + 1 : number + 1 + around]))
                found.hits.append(Hit(name, number + 1, word, _clip(line), before, after))


def files_of(place: Path, left_out: LeftOut) -> Iterator[Path]:
    """Files below a folder (or the file itself) in order, without hidden, generated and secret ones."""
    if not place.is_dir():
        yield place.resolve()
        return
    given = 0
    for folder, below, names in os.walk(place, onerror=lambda error: left_out.note("unreadable", _of(error, place))):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in SKIPPED)
        for name in sorted([*names, *(each for each in below if (Path(folder) / each).is_symlink())]):
            file = Path(folder) / name
            if SECRET.fullmatch(name):
                left_out.note("likely to hold secrets", name_of(file, place))
            elif name.startswith("."):
                continue
            elif file.is_symlink():
                left_out.note("symlinked", name_of(file, place))
            elif given >= MAX_FILES:
                left_out.note(f"beyond the first {MAX_FILES:,} files", name_of(file, place))
                return
            else:
                given += 1
                yield file


def content_of(file: Path) -> bytes | str:
    """Content of a regular file, or the reason why it is left out. A pipe or a device is opened, but never read."""
    try:
        number = os.open(file, _OPEN)
    except OSError as error:
        return "not a regular file" if error.errno in (errno.ENXIO, errno.ELOOP) else "unreadable"
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode):
        os.close(number)
        return "not a regular file"
    try:
        with os.fdopen(number, "rb") as stream:
            data = b"" if state.st_size > MAX_FILE_BYTES else stream.read(MAX_FILE_BYTES + 1)
    except OSError:
        return "unreadable"
    if max(state.st_size, len(data)) > MAX_FILE_BYTES:
        return f"larger than {MAX_FILE_BYTES // 1_000_000} MB"
    return "binary" if b"\0" in data[:SNIFF_BYTES] else data


def name_of(file: Path, place: Path) -> str:
    """Path below a folder, or the name of the file that was given; without what UTF-8 cannot hold."""
    name = file.relative_to(place).as_posix() if place.is_dir() else place.name
    return name.encode("utf-8", "replace").decode()


def _of(error: OSError, place: Path) -> str:
    return name_of(Path(error.filename), place) + "/"


def _clip(line: str) -> str:
    line = line.rstrip()
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"


def counted(number: int, noun: str) -> str:
    """Number and noun, with an s unless there is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_json(found: Found) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "searched": found.searched,
        "counts": dict(found.counts.most_common()),
        "files": dict(found.files.most_common()),
        "hits": [asdict(hit) for hit in found.hits],
        "left_out": found.left_out.counts(),
    }


def as_markdown(found: Found) -> str:
    """Hits below the names of their files."""
    total = counted(found.counts.total(), "hit")
    lines = [f"# {total} in {len(found.files):,} of {counted(found.searched, 'file')}", ""]
    name = ""
    for hit in found.hits:
        if hit.path != name:
            lines += [*([""] if name else []), f"## {hit.path}", ""]
            name = hit.path
        lines.append(f"- line {hit.line}, **{hit.keyword}**: {hit.text.strip()}")
    if left := found.left_out.section():
        lines += [*([""] if name else []), *left]
    return "\n".join(lines).rstrip("\n") + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Find keywords in text files.")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("-k", "--keyword", action="append", default=[])
    parser.add_argument("--regex")
    parser.add_argument("--context-lines", type=int, default=1, choices=range(11), metavar="0-10")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--format", choices=("json", "markdown"), default="json")
    given = parser.parse_args(arguments)
    missing = [str(path) for path in given.paths if not path.exists()]
    if missing:
        parser.error(f"there is nothing at {', '.join(missing)}")
    try:
        pattern = pattern_of(given.keyword, given.regex)
    except ValueError as error:
        parser.error(str(error))
    found = search(given.paths, pattern, around=given.context_lines, limit=min(given.limit, MAX_LIMIT))
    text = (
        as_markdown(found) if given.format == "markdown" else json.dumps(as_json(found), indent=2, ensure_ascii=False)
    )
    sys.stdout.write(text.rstrip("\n") + "\n")
    return 0 if found.counts else 1


if __name__ == "__main__":
    sys.exit(main())
