"""Pages of a text for a model: numbered lines or parts of a long output, with a note on how to read on. Pure."""

from __future__ import annotations

MAX_LINES = 2_000
PAGE_CHARS = 15_000
"""Maximum characters of one page of lines."""

MAX_LINE_CHARS = 2_000


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
