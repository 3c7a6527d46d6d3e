"""Find keywords in text files. Also a command: ``python search_keywords.py PATH -k word``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fireswarm import LeftOut, count_noun, read_text, walk_files

MAX_LIMIT = 5_000
MAX_LINE_CHARS = 500
"""Maximum characters of a line that are shown."""


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
class Found:
    """The number of all hits, and the first hits in full. ``counts``: hits by keyword; ``files``: hits by file."""

    hits: list[Hit] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    searched: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)


def pattern_of(keywords: Sequence[str], regex: str | None = None) -> re.Pattern[str]:
    """Return one expression for all keywords, as whole words; raises ValueError without a keyword."""
    if regex:
        try:
            return re.compile(regex, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"invalid regular expression {regex!r}: {error}") from error
    wanted = sorted({word.strip() for word in keywords if word.strip()}, key=len, reverse=True)
    if not wanted:
        raise ValueError("there is no keyword to search for")
    parts = [r"\s+".join(re.escape(part) for part in word.split()) for word in wanted]
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)", re.IGNORECASE)


def search(paths: Sequence[Path], pattern: re.Pattern[str], *, around: int = 1, limit: int = 200) -> Found:
    """Search files and folders in order of path."""
    found = Found()
    for place in paths:
        for file, name in walk_files(place, found.left_out):
            if (text := read_text(file, name, found.left_out)) is not None:
                found.searched += 1
                _search_lines(name, text.splitlines(), pattern, found, around, limit)
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


def _clip(line: str) -> str:
    line = line.rstrip()
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…"


def extent_of(found: Found) -> str:
    """Return the number of hits, and how many of the searched files have them."""
    searched = count_noun(found.searched, "file")
    if not found.searched:
        return "No text file to search"
    if not found.counts:
        return f"Nothing found in {searched}"
    return f"{count_noun(found.counts.total(), 'hit')} in {len(found.files):,} of {searched}"


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
    """Return the hits as a list below each file name."""
    lines = [f"# {extent_of(found)}", ""]
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
