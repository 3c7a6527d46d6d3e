"""Find out what a source is: the code of a node (TYPE1) or documents of an API (TYPE2), by a table without guessing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

RULES: tuple[tuple[str, str, str, str], ...] = (
    (r"\.node\.js$", r"\bexports\b", "TYPE1", "recorded"),
    (r"\.(ts|js)$", r"\bINodeType(Description)?\b", "TYPE1", "typescript"),
    (
        r"\.(ya?ml|json)$",
        r"""(?m)(?:^[ \t]*+|[{,][ \t]*+)["']?(?:openapi|swagger)["']?[ \t]*+:[ \t]*+["']?[23]""",
        "TYPE2",
        "openapi",
    ),
    (
        r"\.(md|markdown|txt|html?)$",
        r"""(?m)\b(GET|POST|PUT|PATCH|DELETE)\b[`*]*+(\s++|(</?\w++[^<>]*+>)++\s*+)[`*]*+(/|https?://)""",
        "TYPE2",
        "markdown",
    ),
    (r"\.(md|markdown|txt|html?)$", r"(?i)\b(api|endpoint|http)\b", "TYPE2", "document"),
)
"""File name, content, type and reader. The first rule that matches any file decides."""

READERS = {"TYPE1": "typescript", "TYPE2": "document"}
"""The reader of a source that no rule matches, if its type is known."""


class Classified(NamedTuple):
    """What a source is: its type, its reader, the files that the rule matches, and the content that decided."""

    source_type: str
    reader: str
    files: tuple[str, ...]
    content: str


def classify(
    names: Iterable[str], read: Callable[[str], str], source_type: str | None = None, *, recorded: bool = True
) -> Classified | None:
    """Return what the source with the files *names* is, or None if no rule matches.

    *read* returns the text of a file. Only rules for *source_type* count, if it is given. Without *recorded*, a built
    node is read as text, since it is not run.
    """
    listed, texts = tuple(names), dict[str, str]()
    for pattern, content, kind, reader in RULES:
        if source_type not in (None, "", kind) or (reader == "recorded" and not recorded):
            continue
        fitting: list[str] = []
        for name in listed:
            if re.search(pattern, name, re.IGNORECASE):
                if name not in texts:
                    texts[name] = read(name)
                if re.search(content, texts[name]):
                    fitting.append(name)
        if fitting:
            return Classified(kind, reader, tuple(fitting), content)
    if source_type in READERS:
        return Classified(source_type, READERS[source_type], listed[:1], "")
    return None
