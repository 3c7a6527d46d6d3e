"""Writing Markdown: every text is escaped, every table has its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fireswarm import format_number

_SPECIAL = re.compile(r"([\\`*_\[\]<>~$&])")
BAR = "\\|"
_LINE_START = re.compile(r"^([#+\-=]|\d{1,9}[.)])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(value: Any) -> str:
    """Return text on one line without control characters and direction marks, which could hide or reorder it."""
    return " ".join(_CONTROL.sub(" ", str(value)).split())


def escaped(value: Any) -> str:
    """Return text as one line that cannot start markup, a link or HTML; unsafe at the beginning of a line."""
    return _SPECIAL.sub(r"\\\1", visible(value))


def inline(value: Any) -> str:
    """Return escaped text that is also safe at the beginning of a line: it starts no heading, list or rule."""
    return _LINE_START.sub(lambda match: f"{match.group(1)[:-1]}\\{match.group(1)[-1]}", escaped(value))


def code(value: Any) -> str:
    """Return text as a code span: the fence is longer than any run of backticks in it."""
    text = visible(value)
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """Return a pipe table; the cells are Markdown with unescaped pipes, *align* has ``l``, ``r`` or ``c``."""
    marks = {"l": "---", "r": "---:", "c": ":---:"}
    line = [marks[align[index]] if index < len(align) else "---" for index in range(len(header))]
    body = [f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(header)} |", f"| {' | '.join(line)} |", *body])


def bullets(lines: Iterable[str]) -> str:
    """A list; the lines are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


def number(value: Any) -> str:
    """Return a figure for people, or any other value as escaped text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return inline(value)
    return format_number(value)


def brief(value: Any, most: int = 80) -> str:
    """A JSON value as a short escaped phrase."""
    if isinstance(value, list | tuple):
        text = ", ".join(_plain(entry) for entry in value)
    elif isinstance(value, dict):
        text = ", ".join(f"{key} {_plain(entry)}" for key, entry in value.items())
    else:
        return number(value) if isinstance(value, int | float) else inline(clipped(str(value), most))
    return inline(clipped(text, most))


def _plain(value: Any) -> str:
    """Return a figure for people, or any other value as text."""
    return format_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def clipped(text: str, most: int) -> str:
    """Return the beginning of a text, with an ellipsis if it was shortened."""
    return text if len(text) <= most else text[: most - 1].rstrip(" ,;.") + "…"
