"""Texts for a model: a stranger's words in a fence, and pages of lines or of a long output. Pure."""

from __future__ import annotations

import hashlib
from functools import partial

MAX_LINES = 2_000
PAGE_CHARS = 15_000
"""Maximum characters of one page of lines."""

MAX_LINE_CHARS = 2_000


CODE_CHARS = 16
_digest = partial(hashlib.sha256, usedforsecurity=False)


def fence(text: str, origin: str) -> str:
    """Return a stranger's text between two marks with a code, and its *origin* in the first.

    The code is a digest of the text, which no author can put into the text: whatever it contains, it ends at its own
    mark. A repeated turn gets the same prompt.
    """
    code = _digest(f"{origin}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:CODE_CHARS]
    named = " ".join(origin.split()).replace("<", "").replace(">", "")
    return f"<material {code}: {named}>\n{text}\n</material {code}>"


def fence_lines(text: str, origin: str) -> str:
    """Return a text of one line as it is, for a place behind words of ours in their line, and any other in a fence."""
    return fence(text, origin) if len(text.splitlines()) > 1 else text


def say_after(words: str, text: str, origin: str) -> str:
    """Return *words* of ours and a stranger's text: behind them in their line, or in a fence below.

    So no line of the text stands where a heading of ours could stand.
    """
    if len(text.splitlines()) > 1:
        return f"{words}\n{fence(text, origin)}"
    return f"{words}: {text}" if text else words


def page_of_lines(
    lines: list[str], offset: int, limit: int, named: str, most_chars: int = PAGE_CHARS, *, column: int = 0
) -> str:
    """Return a page of numbered lines from line *offset* on, and a note on how to read on.

    The page has at most *most_chars* characters, but at least one line. Lines begin at *column*, from 1 on; a page of a
    single line shows as much of it as fits. With 0, the rest of a long line cannot be read.
    """
    if offset > max(1, len(lines)):
        return f"[{named} has {len(lines):,} lines; offset {offset:,} is after the last one]"
    shown: list[str] = []
    size, start = 0, max(0, column - 1)
    longest = most_chars if column and limit == 1 else MAX_LINE_CHARS
    for number, line in enumerate(lines[offset - 1 : offset - 1 + min(limit, MAX_LINES)], offset):
        text = f"{number:>6}\t{line[start : start + longest]}"
        if (more := len(line) - start - longest) > 0:
            on = f": read on with offset={number}, limit=1, column={start + longest + 1}" if column else ""
            text += f"[{more:,} more characters in this line{on}]"
        size += len(text) + 1
        if shown and size > most_chars:
            break
        shown.append(text)
    last = offset - 1 + len(shown)
    if last < len(lines):
        shown.append(f"[lines {offset} to {last} of {len(lines)} of {named}; read on with offset={last + 1}]")
    return "\n".join(shown) or "[the file is empty]"


def split_pages(text: str, size: int) -> list[str]:
    """Return *text* in parts of at most *size* characters, split at line ends if possible."""
    pages: list[str] = []
    start = 0
    while len(text) - start > size:
        end = text.rfind("\n", start + size // 2, start + size) + 1 or start + size
        pages.append(text[start:end])
        start = end
    return [*pages, text[start:]]
