"""Markdown structure: headings, and links with a check that their targets exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

MAX_HEADING_CHARS = 200
MAX_TARGET_CHARS = 300

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s++((?:[^\s#]++|[\s#]++(?=[^\s#]))*+)[\s#]*+$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_BACKTICKS = re.compile(r"`++")
_LINK = re.compile(r"!?\[[^\[\]]{0,400}\]\(\s*(<[^<>]{1,500}>|[^\s()<>]{1,500}(?:\([^\s()]{0,100}\)[^\s()]{0,200})?)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\[\]^]{1,200}\]:\s*(<[^<>]{1,500}>|\S{1,500})")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")


def outside_fences(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are not inside a fenced code block."""
    fence = ""
    for number, line in enumerate(lines, start=1):
        match = _FENCE.match(line)
        if fence:
            closes = match and match.group(1)[0] == fence[0] and len(match.group(1)) >= len(fence)
            fence = "" if closes and not line.strip().strip(fence[0]) else fence
        elif match:
            fence = match.group(1)
        else:
            yield number, line


def without_code(line: str) -> str:
    """Remove the code spans: each extends from a run of backticks to the next run of the same length."""
    runs = [(match.start(), match.end()) for match in _BACKTICKS.finditer(line)]
    closing: dict[int, int] = {}
    latest: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        if length in latest:
            closing[number] = latest[length]
        latest[length] = number
    kept, after, number = "", 0, 0
    while number < len(runs):
        if number in closing:
            kept += line[after : runs[number][0]]
            number = closing[number]
            after = runs[number][1]
        number += 1
    return kept + line[after:]


def headings_of(lines: list[str]) -> list[dict[str, Any]]:
    """The ``#`` headings outside code blocks: line, level, text."""
    found: list[dict[str, Any]] = []
    for number, line in outside_fences(lines):
        match = _HEADING.match(line)
        if match:
            found.append({"line": number, "level": len(match.group(1)), "text": match.group(2)[:MAX_HEADING_CHARS]})
    return found


def links_of(root: Path, path: str, lines: list[str]) -> list[dict[str, Any]]:
    """Return the links of a file: ``ok`` is true or false for internal links and absent for external ones."""
    anchors: set[str] | None = None
    found: list[dict[str, Any]] = []
    for number, line in outside_fences(lines):
        bare = without_code(line)
        targets = [match.group(1).strip("<>") for match in _LINK.finditer(bare)]
        targets += [match.group(1).strip("<>") for match in [_REFERENCE.match(bare)] if match]
        for target in targets:
            link: dict[str, Any] = {"line": number, "target": _USER_INFO.sub("", target)[:MAX_TARGET_CHARS]}
            if target.startswith("#"):
                anchors = anchors_of(lines) if anchors is None else anchors
                link["ok"] = unquote(target[1:]).lower() in anchors or target == "#"
            elif not _SCHEME.match(target) and not target.startswith("//"):
                link["ok"] = _exists(root, path, target)
            found.append(link)
    return found


def anchors_of(lines: list[str]) -> set[str]:
    """Return the anchors of headings and explicit ``id`` attributes, as common renderers create them."""
    anchors: set[str] = set()
    for heading in headings_of(lines):
        slug = re.sub(r"[^\w\- ]", "", heading["text"].lower(), flags=re.UNICODE).replace(" ", "-")
        serial, unique = 0, slug
        while unique in anchors:
            serial += 1
            unique = f"{slug}-{serial}"
        anchors.add(unique)
    for line in lines:
        anchors.update(
            name.lower() for name in re.findall(r"""<[^<>]{0,200}\b(?:id|name)=["']([^"']{1,200})["']""", line)
        )
    return anchors


def _exists(root: Path, path: str, target: str) -> bool:
    """Return True if the target of an internal link exists; a leading slash refers to the folder itself."""
    name = unquote(target.split("#", 1)[0].split("?", 1)[0])
    if not name or "\0" in name:
        return not name
    base = root if name.startswith("/") else root / PurePosixPath(path).parent
    try:
        return (base / name.lstrip("/")).exists()
    except OSError:
        return False
