"""Rank facts by BM25, with the words of any language, and put those of the requested bucket first."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fireswarm import Fact, rank_texts

MAX_RANKED_CHARS = 2_000

SAME_BUCKET = 5.0
"""Bonus for a fact about the requested folder or file: more than any usual word score."""


def text_of(fact: Fact) -> str:
    """Return the text by which a fact is found: its key, its keywords and its value."""
    value = fact.value if isinstance(fact.value, str) else json.dumps(fact.value, ensure_ascii=False, default=str)
    return " ".join([fact.key.replace("_", " "), *fact.keywords, value[:MAX_RANKED_CHARS]])


def rank(facts: Sequence[Fact], query: str, bucket: str) -> list[tuple[float, Fact]]:
    """Score every fact against *query*, best first; equal scores in order of bucket and key."""
    scores = rank_texts(query, [text_of(fact) for fact in facts])
    scored: list[tuple[float, Fact]] = []
    for fact, score in zip(facts, scores, strict=True):
        bonus = SAME_BUCKET if bucket and fact.bucket == bucket else 0.0
        scored.append((round((score + bonus) * fact.confidence, 4), fact))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].bucket, pair[1].key))
