"""Faults that a reader finds in a report: figures that pretend, wrong plurals, empty sections."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_PATTERNS = {
    "a wrong plural": re.compile(r"(?<![\d,.])1 (?:[a-z]+ )?(?!is|this|as|has|was)[a-z]+(?<![suiao])s\b"),
    "a wrong singular": re.compile(r"\b(?:0|[2-9]|\d{2,}) (?:file|line|row|commit|author|word|link|task)\b"),
    "an exponent": re.compile(r"\d(?:\.\d+)?e[+-]\d"),
    "a percentile": re.compile(r"\btop \d+ ?%"),
    "a number without separators": re.compile(r"(?<![\w.,:/-])\d{4,}(?![\w:-])"),
    "a count of nothing": re.compile(r"\b0 (?:other|files?|lines?|source|test|broken|open|draws)\b", re.IGNORECASE),
    "a kind called other": re.compile(r"\| other \|", re.IGNORECASE),
    "a state folder": re.compile(r"\.fireswarm|\.git\b|__pycache__"),
}
_RANGE = re.compile(r"(?<![\d.,])([\d.,]+%?) to ([\d.,]+%?)(?![\d])")


def faults_of(text: str) -> list[str]:
    """Return every fault of a Markdown text with the line where it stands; the rows of sources are not read."""
    body = text.split("\n## Sources")[0]
    return [*_faults_of_lines(body), *_empty_sections(body)]


def _faults_of_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        plain = _SPAN.sub("", re.sub(r"\bAs of \d{4}-\d\d-\d\d \d\d:\d\d", "", line))
        for fault, pattern in _PATTERNS.items():
            if match := pattern.search(plain):
                yield f"{fault}: {match.group()!r} in {line!r}"
        yield from (f"a range with equal ends: {line!r}" for first, last in _RANGE.findall(plain) if first == last)


def _empty_sections(text: str) -> Iterator[str]:
    """Yield headings that nothing follows but another heading of the same or a higher level."""
    blocks = [block for block in text.strip().split("\n\n") if block.strip()]
    levels = [len(block) - len(block.lstrip("#")) if block.startswith("#") else 0 for block in blocks]
    for place, level in enumerate(levels):
        if level and (place + 1 == len(levels) or 0 < levels[place + 1] <= level):
            yield f"an empty section: {blocks[place]!r}"
