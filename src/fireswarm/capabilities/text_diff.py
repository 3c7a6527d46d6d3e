"""The change of a file as a unified diff, for a person who has to approve it."""

from __future__ import annotations

import difflib

MAX_LINES = 2_000
"""Maximum number of lines that are compared: comparing takes more than linear time."""

MAX_LINE_CHARS = 500
CONTEXT_LINES = 3


def text_diff(path: str, before: str | bytes | None, after: str | bytes | None) -> str:
    r"""Return the change from *before* to *after* (None: no file) as a unified diff, or as sizes for binary content.

    Shows \r at the ends of lines, unless all lines of both texts end with \r\n.
    """
    if before == after:
        return f"{path} does not change"
    if isinstance(before, bytes) or isinstance(after, bytes):
        return f"{path}: {_size(before)} -> {_size(after)}"
    if all(text is None or "\n" not in text.replace("\r\n", "") for text in (before, after)):
        before, after = (text and text.replace("\r\n", "\n") for text in (before, after))
    old, new = _lines(before), _lines(after)
    if len(old) > MAX_LINES or len(new) > MAX_LINES:
        shown = "\n".join(f"+{line}" for line in new[:MAX_LINES])
        return f"{path}: {len(old):,} lines are replaced by {len(new):,}\n{shown}"
    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    return "\n".join(difflib.unified_diff(old, new, *names, lineterm="", n=CONTEXT_LINES))


def _lines(text: str | None) -> list[str]:
    return [line[:MAX_LINE_CHARS] for line in (text or "").removesuffix("\n").split("\n")] if text else []


def _size(content: str | bytes | None) -> str:
    if content is None:
        return "no file"
    return f"{len(content if isinstance(content, bytes) else content.encode()):,} bytes"
