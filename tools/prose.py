"""Gate on wording: counts discouraged phrases in docstrings, messages, comments, pages and test names.

``prose_counts.json`` holds the allowed count per phrase and file. A total above it fails, and so does a total below
it until ``make generate`` has lowered the number. Nothing here raises a number.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COUNTS = Path("tools") / "prose_counts.json"
PYTHON = ("src/**/*.py", "packages/*/src/**/*.py", "skills/**/*.py")
PAGES = ("README.md", "packages/*/README.md", "docs/**/*.md", "roles/**/*.md", "skills/**/*.md")
TESTS = ("tests/**/test_*.py", "packages/*/tests/**/test_*.py")

OPENING = "question word first"
PHRASES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "is no": r"(?<!\bthere )\bis no (?!longer\b|more\b|less\b|later\b)(?=\w)",  # "there is no file" is English
        "whoever": r"\bwhoever\b",
        "nobody": r"\bnobody\b",
        "somebody": r"\bsomebody",
        "anew": r"\banew\b",
        "beside": r"\bbeside\b",
        "mend": r"\bmend(?:s|ed|ing)?\b",
        "of its own": r"\bof its own\b",
        "what came of": r"\bwhat came of\b",
        "the house": r"\bthe house\b",
    }.items()
}
KINDS = (*PHRASES, OPENING)
FIRST_WORD = re.compile(r"(?:What|Whether|Where|Who|How|Why)\b", re.IGNORECASE)
TEST_NAME = re.compile(r"^\s*(?:async )?def test_(\w+)", re.MULTILINE)
STRINGS = (tokenize.STRING, tokenize.FSTRING_MIDDLE)
MARKS = re.compile(r"""^(?:[rbf]*["']+|[#:>*\s]+)|["']+$""", re.IGNORECASE)

Counts = dict[str, dict[str, int]]


class Place(NamedTuple):
    """Location of a discouraged phrase."""

    kind: str
    file: str
    line: int


def places(root: Path = ROOT) -> list[Place]:
    """List every discouraged phrase below *root*, by file and line."""
    found: list[Place] = []
    for globs, read in ((PYTHON, _python), (PAGES, _page), (TESTS, _test_names)):
        for path in sorted({path for pattern in globs for path in root.glob(pattern)}):
            name = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            found += sorted({(place.line, place.kind): place for place in read(name, text)}.values())
    return found


def count(found: list[Place]) -> Counts:
    """Count the places by phrase, then by file."""
    counts: Counts = {kind: {} for kind in KINDS}
    for place in found:
        counts[place.kind][place.file] = counts[place.kind].get(place.file, 0) + 1
    return counts


def allowed(root: Path = ROOT) -> Counts:
    """Load the committed counts."""
    loaded: Counts = json.loads((root / COUNTS).read_text(encoding="utf-8"))
    return loaded


def lowered(root: Path = ROOT) -> str:
    """Return the new counts file: a phrase whose total has not grown gets its current counts."""
    recorded, today = allowed(root), count(places(root))
    kept = {
        kind: today[kind] if kind not in recorded or _total(today, kind) <= _total(recorded, kind) else recorded[kind]
        for kind in KINDS
    }
    return json.dumps(kept, indent=2, sort_keys=True) + "\n"


def faults(root: Path = ROOT) -> Iterator[str]:
    """Yield a message for every phrase whose total differs from the recorded one, with its new places."""
    recorded, found = allowed(root), places(root)
    today = count(found)
    for kind in KINDS:
        now, limit = _total(today, kind), _total(recorded, kind)
        if now > limit:
            for file, number in today[kind].items():
                if number > (before := recorded.get(kind, {}).get(file, 0)):
                    lines = ", ".join(str(p.line) for p in found if (p.kind, p.file) == (kind, file))
                    yield f"{file}:{lines}: {kind!r} {number} times, {before} allowed: reword it"
        elif now < limit:
            yield f"{COUNTS}: {kind!r} is down to {now} from {limit}: lower the number with `make generate`"


def _total(counts: Counts, kind: str) -> int:
    return sum(counts.get(kind, {}).values())


def _phrases(name: str, lines: list[tuple[int, str]]) -> Iterator[Place]:
    """Yield the phrases in numbered lines, including phrases that span two lines."""
    pieces = [MARKS.sub("", line.strip()).strip() + " " for _, line in lines]
    starts = list(accumulate((len(piece) for piece in pieces), initial=0))
    text = "".join(pieces)
    for kind, pattern in PHRASES.items():
        for match in pattern.finditer(text):
            yield Place(kind, name, lines[bisect_right(starts, match.start()) - 1][0])


def _python(name: str, text: str) -> Iterator[Place]:
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in STRINGS or token.type == tokenize.COMMENT:
            lines += [(token.start[0] + below, line) for below, line in enumerate(token.string.splitlines())]
    yield from _phrases(name, lines)
    for line, docstring in _docstrings(ast.parse(text)):
        if FIRST_WORD.match(docstring.strip()):
            yield Place(OPENING, name, line)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings, including those below a constant or a field, which Python discards."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def _page(name: str, text: str) -> Iterator[Place]:
    yield from _phrases(name, list(enumerate(text.splitlines(), start=1)))


def _test_names(name: str, text: str) -> Iterator[Place]:
    for match in TEST_NAME.finditer(text):
        words = match[1].replace("_", " ")
        line = text.count("\n", 0, match.start(1)) + 1
        if FIRST_WORD.match(words):
            yield Place(OPENING, name, line)
        yield from _phrases(name, [(line, words)])
