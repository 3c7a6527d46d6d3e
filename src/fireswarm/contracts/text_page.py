"""Pages of a text for a model: numbered lines or parts of a long output, with a note on how to read on. Pure."""

from __future__ import annotations

MAX_LINES = 2_000
PAGE_CHARS = 15_000
"""Maximum characters of one page of lines."""

MAX_LINE_CHARS = 2_000


def page_of_lines(lines: list[str], offset: int, limit: int, named: str, most_chars: int = PAGE_CHARS) -> str:
    """Return a page of numbered lines from line *offset* on, and a note on how to read on.

    The page has at most *most_chars* characters, but at least one line.
    """
    if offset > max(1, len(lines)):
        return f"[{named} has {len(lines):,} lines; offset {offset:,} is after the last one]"
    shown: list[str] = []
    size = 0
    for number, line in enumerate(lines[offset - 1 : offset - 1 + min(limit, MAX_LINES)], offset):
        text = f"{number:>6}\t{line[:MAX_LINE_CHARS]}"
        if len(line) > MAX_LINE_CHARS:
            text += f"[{len(line) - MAX_LINE_CHARS:,} more characters in this line]"
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
