"""BM25 over facts: the rarer a shared word and the shorter the fact, the higher it ranks."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

from fireswarm import Fact

MAX_RANKED_CHARS = 2_000

K1, B = 1.2, 0.75
"""The usual BM25 constants (Robertson and Zaragoza, 2009): saturation of repeats, weight of length."""

SAME_BUCKET = 5.0
"""Bonus for a fact about the requested folder or file: more than any usual word score."""

_WORD = re.compile(r"[^\W_]{2,}", re.UNICODE)


def words_of(text: str) -> list[str]:
    """Return lower-case words of two or more letters, separated by underscores and punctuation."""
    return _WORD.findall(text.lower())


def fact_words(fact: Fact) -> list[str]:
    """Return the words by which a fact is found: its key, its keywords and its value."""
    value = fact.value if isinstance(fact.value, str) else json.dumps(fact.value, sort_keys=True, default=str)
    return words_of(" ".join([fact.key, *fact.keywords, value[:MAX_RANKED_CHARS]]))


def rank(facts: list[Fact], query: list[str], bucket: str) -> list[tuple[float, Fact]]:
    """Score every fact against the *query* words, best first; equal scores in order of bucket and key."""
    documents = [Counter(fact_words(fact)) for fact in facts]
    lengths = [sum(document.values()) for document in documents]
    usual = sum(lengths) / len(lengths) if lengths else 1.0
    holders = Counter(word for document in documents for word in document)
    wanted = sorted(set(query))
    scored: list[tuple[float, Fact]] = []
    for fact, document, length in zip(facts, documents, lengths, strict=True):
        score = SAME_BUCKET if bucket and fact.bucket == bucket else 0.0
        for word in wanted:
            count = document.get(word, 0)
            if count:
                rarity = math.log(1 + (len(facts) - holders[word] + 0.5) / (holders[word] + 0.5))
                score += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * length / (usual or 1.0)))
        scored.append((round(score * fact.confidence, 4), fact))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].bucket, pair[1].key))
