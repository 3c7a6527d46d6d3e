"""Words that describe a folder: counted per file, weighted over all files."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .prose import outside_fences

_WORD = re.compile(r"[^\W\d_][^\W_]{2,29}")
_IDENTIFIER = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]{2,60}\b")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_ADDRESS = re.compile(r"\b[a-z]+://\S+")

STOP_WORDS = frozenset((Path(__file__).parent / "stop_words.txt").read_text(encoding="utf-8").split())
"""Words too common in English or in source code to describe a folder."""


def prose_terms(lines: list[str]) -> Counter[str]:
    """Count the words of a document outside its code blocks and addresses."""
    counts: Counter[str] = Counter()
    for _, line in outside_fences(lines):
        counts.update(_kept(_WORD.findall(_ADDRESS.sub(" ", line).lower())))
    return counts


def code_terms(lines: list[str]) -> Counter[str]:
    """Count the words inside identifiers: ``readConfigFile`` and ``read_config_file`` both give config and file."""
    whole: Counter[str] = Counter()
    for line in lines:
        whole.update(_IDENTIFIER.findall(line))
    counts: Counter[str] = Counter()
    for identifier, count in whole.items():
        for word in _kept(part.lower() for part in _PARTS.findall(identifier)):
            counts[word] += count
    return counts


def _kept(words: Iterable[str]) -> list[str]:
    return [word for word in words if 3 < len(word) < 30 and word not in STOP_WORDS]


def weigh_terms(counts: Iterable[dict[str, int]], most: int) -> list[dict[str, Any]]:
    """Rank terms over files by the sum of ``1 + ln(tf)`` times ``ln(1 + n / df)``: frequent, but not in every file."""
    weight: dict[str, float] = {}
    files: Counter[str] = Counter()
    total = 0
    for terms in counts:
        total += 1
        for term, count in terms.items():
            weight[term] = weight.get(term, 0.0) + 1.0 + math.log(count)
            files[term] += 1
    scored = [
        (weight[term] * math.log(1 + total / files[term]), term) for term in weight if files[term] > 1 or total < 5
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    return [{"term": term, "score": round(score, 2), "files": files[term]} for score, term in scored[:most]]
