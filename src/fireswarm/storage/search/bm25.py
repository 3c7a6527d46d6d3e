"""BM25 over texts of any language, in memory; documents are added, replaced and removed one at a time.

Fields are weighted as in BM25F (Robertson, Zaragoza, Taylor: Simple BM25 extension to multiple weighted fields, 2004).
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fireswarm.storage.search.words import STOP, is_unspaced, stem, without_marks, words

SATURATION = 1.2
"""BM25's k1: how fast further repetitions of a word lose weight."""

BY_LENGTH = 0.75
"""BM25's b: how much a long document loses."""

STOP_WEIGHT = 0.1
"""Weight of a function word in a request. It is not 0: in a small set, "it" or "who" may be a name."""

PLAIN_WEIGHT = 0.5
"""Weight of a word without its diacritics, beside the word itself."""

CHARACTER_WEIGHT = 0.3
"""Weight of a single character of a script without blanks, beside the pairs."""

MAX_QUERY_WORDS = 200
"""Maximum number of different words of a request that are looked up: the first ones."""

_NAME = re.compile(r"[A-Za-z0-9]+")
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def rarity(count: int, having: float) -> float:
    """BM25's idf: ``ln(1 + (N - n + 0.5) / (n + 0.5))`` for a term in n of N documents."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def saturate(weight: float) -> float:
    """Return the share of a term's rarity that a weighted frequency earns: 1 for a frequency of 1."""
    return weight * (SATURATION + 1) / (weight + SATURATION)


def index_words(text: str) -> list[str]:
    """Return the words of a text, and the parts of names that are written together: ``maxAttempts``, ``HTTPServer``."""
    parts = (_JOINT.sub(" ", name) for name in _NAME.findall(text) if not (name.islower() or name.isupper()))
    return [*words(text), *words(" ".join(apart for apart in parts if " " in apart))]


def variants(word: str) -> list[tuple[str, float]]:
    """Return the index terms of a word with their weights: the word without endings, and without diacritics."""
    if word.isascii():
        return [(stem(word), 1.0)]
    if is_unspaced(word):
        return [(word, 1.0)] if len(word) == 1 else [(word, 1.0), *((char, CHARACTER_WEIGHT) for char in word)]
    plain = without_marks(word)
    return [(word, 1.0)] if plain == word else [(word, 1.0), (stem(plain), PLAIN_WEIGHT)]


@dataclass(slots=True)
class TextIndex:
    """Documents by name, each with the weight of its terms and its length."""

    postings: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    terms: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    lengths: dict[str, float] = field(default_factory=dict[str, float])
    total_length: float = 0.0

    def add(self, name: str, parts: Iterable[tuple[str, float]]) -> None:
        """Add a document of texts with their weights, or replace it."""
        self.remove(name)
        weights: dict[str, float] = {}
        length = 0.0
        for text, weight in parts:
            for word in index_words(text):
                length += weight
                for term, share in variants(word):
                    weights[term] = weights.get(term, 0.0) + weight * share
        for term, weight in weights.items():
            self.postings.setdefault(term, {})[name] = weight
        self.terms[name] = tuple(weights)
        self.lengths[name] = length
        self.total_length += length

    def remove(self, name: str) -> None:
        """Remove a document; a missing one is not an error."""
        for term in self.terms.pop(name, ()):
            holders = self.postings[term]
            del holders[name]
            if not holders:
                del self.postings[term]
        self.total_length -= self.lengths.pop(name, 0.0)

    def rank(self, query: str, *, without: Container[str] = ()) -> list[tuple[str, float]]:
        """Return the documents that share a word with *query*, best first, ties by name, with their scores.

        A shared function word counts only if the query has no other words. Each word counts once, by the variant that
        fits best. Documents in *without* are left out.
        """
        asked = list(dict.fromkeys(index_words(query)))[:MAX_QUERY_WORDS]
        telling = [word for word in asked if word not in STOP]
        scores: dict[str, float] = {}
        for word in telling or asked:
            self._count(word, 1.0, scores)
        if telling:
            found = dict.fromkeys(scores)
            for word in asked:
                if word in STOP:
                    self._count(word, STOP_WEIGHT, scores, found)
        ranked = ((-score, name) for name, score in scores.items() if name not in without)
        return [(name, -score) for score, name in sorted(ranked)]

    def _count(self, word: str, weight: float, scores: dict[str, float], among: Container[str] | None = None) -> None:
        """Add the value of a word to the scores of its documents."""
        best: dict[str, float] = {}
        usual = self.total_length / len(self.lengths) if self.lengths else 1.0
        for term, share in variants(word):
            holders = self.postings.get(term, {})
            worth = weight * share * rarity(len(self.lengths), len(holders))
            for name, frequency in holders.items():
                if among is not None and name not in among:
                    continue
                length = 1 - BY_LENGTH + BY_LENGTH * self.lengths[name] / (usual or 1.0)
                best[name] = max(best.get(name, 0.0), worth * saturate(frequency / length))
        for name, value in best.items():
            scores[name] = scores.get(name, 0.0) + value


def rank_texts(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 score of each text for *query*, in their order; 0 for a text that shares no word with it."""
    index = TextIndex()
    for number, text in enumerate(texts):
        index.add(f"{number:09d}", [(text, 1.0)])
    scores: Mapping[str, float] = dict(index.rank(query))
    return [scores.get(f"{number:09d}", 0.0) for number in range(len(texts))]
