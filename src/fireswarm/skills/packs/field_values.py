"""Convert frontmatter values of any form to the catalog's types. Pure, bounded, never raising."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
"""A skill's name in the specification: lowercase letters and digits, single hyphens between them."""

MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
MAX_COMPATIBILITY_CHARS = 500
"""Lengths of the Agent Skills specification (agentskills.io/specification)."""

KEPT_DESCRIPTION_CHARS = 4_096
"""Maximum characters of an overlong description, the rest is cut with a warning: four times the allowed length."""

MAX_METADATA = 200
MAX_DEPTH = 6
MAX_VISITED = 2_000
MAX_VALUE_CHARS = 4_096
"""Limits of flattened metadata: entries, nesting, visited lists and scalars, characters of one value."""

_NOTHING = frozenset({"", "~", "null", "Null", "NULL", "|", ">", "|-", ">-"})


def plain(value: Any) -> str:
    """Return a scalar, a list or a map as one line of text; "" for an empty value."""
    if isinstance(value, dict | list):
        value = " ".join(text for _, text in _leaves(value))
    text = " ".join(str("" if value is None else value).split())
    return "" if text in _NOTHING else text


def is_name(text: str) -> bool:
    """Return True if *text* is a valid skill name of the specification."""
    return len(text) <= MAX_NAME_CHARS and NAME.fullmatch(text) is not None


def slug(text: str) -> str:
    """Return the nearest valid name, or ""."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:MAX_NAME_CHARS].strip("-")


def word_list(value: Any) -> tuple[str, ...]:
    """Return the words of a YAML list or of a text with commas (tags, roles)."""
    parts = [text for _, text in _leaves(value)] if isinstance(value, list) else plain(value).strip("[]").split(",")
    return tuple(dict.fromkeys(text for part in parts if (text := part.strip().strip("\"'"))))


def tools(value: Any) -> tuple[str, ...]:
    """Return tools from a YAML list, a comma list or words: ``Bash(git status:*), Read`` and ``Bash(git:*) Read``.

    Commas and spaces inside parentheses belong to the tool.
    """
    parts = [text for _, text in _leaves(value)] if isinstance(value, list | dict) else [plain(value).strip("[]")]
    words: list[str] = []
    for part in parts:
        depth, word = 0, ""
        for letter in part + " ":
            if letter in ", \t\n" and depth == 0:
                words.append(word.strip().strip("\"'"))
                word = ""
                continue
            depth = max(0, depth + (letter == "(") - (letter == ")"))
            word += letter
        words.append(word.strip())
    return tuple(dict.fromkeys(word for word in words if word))


def flat(value: Any) -> dict[str, str]:
    """Return metadata as a map of strings: nested maps by dotted keys, lists joined by commas."""
    if not isinstance(value, dict):
        text = plain(value)
        return {"metadata": text[:MAX_VALUE_CHARS]} if text else {}
    fields: dict[str, str] = {}
    for key, text in _leaves(value):
        if key in fields:
            text = f"{fields[key]}, {text}"
        fields[key] = text[:MAX_VALUE_CHARS]
    return fields


def _leaves(value: Any) -> list[tuple[str, str]]:
    """Return dotted key and text of every scalar in *value*, at most ``MAX_METADATA``.

    The number of visited nodes is limited too, since nine levels of YAML aliases can contain a billion paths.
    """
    leaves: list[tuple[str, str]] = []
    for visited, leaf in enumerate(_walk(value, "", 0)):
        if leaf is not None:
            leaves.append(leaf)
        if len(leaves) >= MAX_METADATA or visited >= MAX_VISITED:
            break
    return leaves


def _walk(value: Any, key: str, depth: int) -> Iterator[tuple[str, str] | None]:
    """Yield every scalar below *value*, and None for each list or map on the way."""
    if not isinstance(value, dict | list):
        yield key, plain(value)
        return
    yield None
    if depth >= MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{key}.{name}" if key else str(name), depth + 1)
    else:
        for inner in value:
            yield from _walk(inner, key, depth + 1)
