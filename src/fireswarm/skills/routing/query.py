"""Parse a request: its words, and the index terms that each may match."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import OSA

from fireswarm.skills.routing.index import Index
from fireswarm.skills.routing.related import known_words, related_stems
from fireswarm.storage.search.words import STOP, extensions, is_soft, stem, words

SOFT_WEIGHT = 0.4
EXTENSION_WEIGHT = 1.5
PHRASE_WEIGHT = 0.3
"""Weight of a common word, of a file extension and of an adjacent pair, relative to 1 for a word."""

RELATED_FACTOR = 0.5
FAMILY_FACTOR = 0.6
COMPOUND_FACTOR = 0.7
TYPO_FACTOR = 0.8
"""Weight of a term that is not the word itself: a related word, another form, a compound, a corrected typo.

Chosen on the development half of benchmarks/routing/prompts.json.
"""

MAX_WORDS = 80
"""Maximum number of different words of a request that are looked up: the first ones."""


@dataclass(frozen=True, slots=True)
class Term:
    """An index term that a word may match, its weight, and the kind of match ("" for the word itself).

    ``worth`` is the maximum score of a skill for the term: the factor times the term's rarity, in nats.
    """

    key: str
    factor: float
    how: str
    worth: float


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept of a request: any of its terms matches it, and the best match counts."""

    word: str
    weight: float
    terms: tuple[Term, ...]


def concepts(text: str, index: Index) -> list[Concept]:
    """Return the words of the request that the index knows, then the phrases of adjacent words."""
    listed = [word for word in words(text) if word not in STOP and not word.isdigit()]
    often = Counter(listed)
    named = set(extensions(text))
    parsed: list[Concept] = []
    for word in list(often)[:MAX_WORDS]:
        weight = SOFT_WEIGHT if is_soft(word) else 1 + 0.5 * math.log(often[word])
        if word in named:
            weight *= EXTENSION_WEIGHT
        terms = tuple(_terms(word, index))
        if terms:
            parsed.append(Concept(word, weight, terms))
    return parsed + list(_phrases(listed[: 2 * MAX_WORDS], index))


def _term(index: Index, key: str, factor: float, how: str = "") -> Term:
    return Term(key, factor, how, factor * index.rarity(key))


def _terms(word: str, index: Index) -> Iterator[Term]:
    """Yield index terms for a word: itself, related words, its family; a compound or a typo only if these fail."""
    key = stem(word)
    yielded = {key}
    if key in index.postings:
        yield _term(index, key, 1.0)
    for other in related_stems().get(key, ()):
        if other not in yielded and other in index.postings:
            yielded.add(other)
            yield _term(index, other, RELATED_FACTOR, f"related to {word}")
    for other in _family(key, index):
        if other not in yielded:
            yielded.add(other)
            yield _term(index, other, FAMILY_FACTOR, f"form of {word}")
    if len(yielded) > 1 or key in index.postings or key in related_stems():
        return
    compound = list(_compound(key, index))
    yield from compound or _correct_typo(word, index)


def _family(key: str, index: Index) -> Iterator[str]:
    """Yield stems with the same beginning that differ in at most three final letters: ``scrap`` and ``scraper``."""
    if len(key) < 4:
        return
    for length in range(max(4, len(key) - 3), len(key)):
        if _is_known(key[:length], index):
            yield key[:length]
    place = bisect_left(index.strong, key)
    while place < len(index.strong) and index.strong[place].startswith(key):
        if 0 < len(index.strong[place]) - len(key) <= 3:
            yield index.strong[place]
        place += 1


def _is_known(key: str, index: Index) -> bool:
    place = bisect_left(index.strong, key)
    return place < len(index.strong) and index.strong[place] == key


def _compound(key: str, index: Index) -> Iterator[Term]:
    """Yield both parts of a compound: ``webapp`` for ``web app``."""
    for cut in range(3, len(key) - 2):
        left, right = key[:cut], stem(key[cut:])
        if f"{left} {right}" in index.postings:
            yield _term(index, f"{left} {right}", COMPOUND_FACTOR, f"parts of {key}")
            return


def _correct_typo(word: str, index: Index) -> Iterator[Term]:
    """Yield the likely correct word for a typo: same first letter, one edit, or two from eight letters on."""
    if len(word) < 5:
        return
    allowed = 2 if len(word) >= 8 else 1
    candidates = [known for known in _words_from(word[0], index) if abs(len(known) - len(word)) <= allowed]
    best = process.extractOne(word, candidates, scorer=OSA.distance, score_cutoff=allowed)
    if best is None:
        return
    key = stem(best[0])
    if key in index.postings:
        yield _term(index, key, TYPO_FACTOR, f"{word} read as {best[0]}")
    for other in related_stems().get(key, ()):
        if other in index.postings:
            yield _term(index, other, TYPO_FACTOR * RELATED_FACTOR, f"{word} read as {best[0]}")


def _words_from(letter: str, index: Index) -> list[str]:
    """Return the words with that first letter in skills and thesaurus; sorted, so that ties are stable."""
    if not index.by_letter:
        for known in sorted({*index.surface, *known_words()}):
            index.by_letter.setdefault(known[0], []).append(known)
    return index.by_letter.get(letter, [])


def _phrases(listed: list[str], index: Index) -> Iterator[Concept]:
    """Yield a concept for each adjacent pair of words that the index knows."""
    seen: set[str] = set()
    for left, right in zip(listed, listed[1:], strict=False):
        if is_soft(left) and is_soft(right):
            continue
        pair, joined = f"{stem(left)} {stem(right)}", stem(left + right)
        if pair in seen:
            continue
        seen.add(pair)
        terms = [
            _term(index, key, factor, how)
            for key, factor, how in _pair_terms(pair, joined, left + right)
            if key in index.postings
        ]
        if terms:
            yield Concept(f"{left} {right}", PHRASE_WEIGHT, tuple(terms))


def _pair_terms(pair: str, joined: str, together: str) -> Iterator[tuple[str, float, str]]:
    """Yield terms for an adjacent pair: the phrase, related terms, and the pair written as one word."""
    yield pair, 1.0, "phrase"
    for other in related_stems().get(pair, ()):
        yield other, 1.0, f"related to {pair}"
    if len(together) > 5:
        yield joined, 2.0, f"as one word {together}"
