"""Inverted index of the router: the weight of each word for each skill.

Fields are weighted as in BM25F (Robertson, Zaragoza, Taylor: Simple BM25 extension to multiple weighted fields, 2004):
occurrences are summed over the fields, weighted by field and relative to its length, before saturation.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from fireswarm.skills.packs.catalog import Skill, without_collection
from fireswarm.skills.packs.parse import decode, split
from fireswarm.storage.search.bm25 import rarity
from fireswarm.storage.search.words import STOP, is_soft, stem, words

BODY_BYTES = 16_000
"""Maximum bytes of a SKILL.md that are indexed: about 2,500 words, more than the body of most skills."""

LEAST_DOCUMENTS = 50
"""Minimum number of skills assumed for rarity: among three skills, every word would seem common."""


class Weight(NamedTuple):
    """Weight of an occurrence in a field, and strength of the length normalization (0 to 1)."""

    weight: float
    by_length: float


FIELDS = {
    "name": Weight(2.5, 0.3),
    "description": Weight(1.8, 0.5),
    "use": Weight(2.0, 0.4),
    "tags": Weight(2.0, 0.5),
    "headings": Weight(0.8, 0.5),
    "body": Weight(0.4, 0.7),
}
"""Weights of the fields, chosen on the development half of benchmarks/routing/prompts.json. "use" are the sentences
that say when to use a skill.
"""

_USE = re.compile(
    r"\b(?:use (?:it |this |the )?(?:skill )?(?:when|for|to|if|whenever)|triggers?\b|when (?:the )?user)", re.I
)
_NEGATIVE = re.compile(
    r"\b(?:(?:do|does|should|must)\s*(?:not|n['’]t)\s+(?:be\s+)?(?:use|trigger|invoke|apply|activate|handle|cover)"
    r"|don['’]?t\s+(?:use|trigger|invoke|apply)|never\s+use|not\s+(?:for|meant|intended|suitable|appropriate|to\s+be\s+used)"
    r"|(?:skip|avoid)\s+(?:it\s+|this\s+)?(?:for|when|if))",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.;!?])\s++|\n++|(?<![^\S\n])[^\S\n]++[—–-]++\s++")
_NO_USE_TITLE = re.compile(r"when not to|do not use|don['’]t use|not for|out of scope|limitations", re.I)


@dataclass(frozen=True, slots=True)
class Fields:
    """The words of a skill, in order, by field; ``negative`` are words that its description excludes."""

    words: Mapping[str, Sequence[str]]
    negative: frozenset[str] = frozenset()


@dataclass(slots=True)
class Postings:
    """Numbers of the skills with a word, ascending, and the weighted frequency in each."""

    skills: array[int] = field(default_factory=lambda: array("I"))
    weights: array[float] = field(default_factory=lambda: array("f"))

    def weight_in(self, number: int) -> float:
        """Return the weighted frequency in one skill; 0 if it does not have the word."""
        place = bisect_left(self.skills, number)
        return self.weights[place] if place < len(self.skills) and self.skills[place] == number else 0.0


@dataclass(slots=True)
class Index:
    """Data for scoring. ``strong``: stems of names, descriptions, tags and headings, sorted."""

    count: int = 0
    postings: dict[str, Postings] = field(default_factory=dict)
    negative: dict[str, list[int]] = field(default_factory=dict)
    strong: list[str] = field(default_factory=list)
    surface: dict[str, str] = field(default_factory=dict)
    by_letter: dict[str, list[str]] = field(default_factory=dict)

    def rarity(self, term: str) -> float:
        """BM25's idf: ``ln(1 + (N - n + 0.5) / (n + 0.5))`` for a term in n of N skills; 0 for none."""
        posting = self.postings.get(term)
        if posting is None:
            return 0.0
        return self.rarity_of(len(posting.skills))

    def rarity_of(self, having: float) -> float:
        """Return the idf of a term in *having* skills."""
        count = max(self.count, LEAST_DOCUMENTS)
        return rarity(count, having)


def fields_of(skill: Skill, *, bodies: bool = True) -> Fields:
    """Split a skill into the words of its fields; its file is read only for the body."""
    plain: list[str] = []
    use: list[str] = []
    negative: list[str] = []
    for sentence in _SENTENCE.split(skill.description):
        match = _NEGATIVE.search(sentence)
        if match is not None:
            negative += words(sentence[match.end() :])
            sentence = sentence[: match.start()]
        (use if _USE.search(sentence) else plain).extend(words(sentence))
    found: dict[str, Sequence[str]] = {
        "name": words(skill.name),
        "description": plain,
        "use": use,
        "tags": words(" ".join(skill.tags)),
        "headings": words(" ".join(title for title in skill.headings if not _NO_USE_TITLE.search(title))),
    }
    if bodies:
        found["body"] = words(_body(skill))
    said_not = {stem(word) for word in negative if word not in STOP and not is_soft(word)}
    return Fields(found, frozenset(said_not - {stem(word) for word in (*plain, *use, *found["name"])}))


def _unsaid(note: str) -> None:
    """Ignore a warning: it was already reported when the file was loaded."""


def _body(skill: Skill) -> str:
    """Return the beginning of a skill's text, without sections about when not to use it."""
    try:
        with skill.path.open("rb") as file:
            body = split(decode(file.read(BODY_BYTES), _unsaid))[1]
    except OSError:
        return ""
    kept: list[str] = []
    dropping = False
    for line in body.split("\n"):
        if line.startswith("#"):
            dropping = _NO_USE_TITLE.search(line) is not None
        if not dropping:
            kept.append(line)
    return "\n".join(kept)


def build(skills: Iterable[Skill], *, bodies: bool = True) -> Index:
    """Index *skills*, numbered in the given order."""
    with without_collection():
        return _build(skills, bodies)


def _build(skills: Iterable[Skill], bodies: bool) -> Index:
    """Count the words of all skills and build the index."""
    index = Index()
    counted: list[dict[str, Counter[str]]] = []
    totals: Counter[str] = Counter()
    surface: dict[str, str] = {}
    for number, skill in enumerate(skills):
        fields = fields_of(skill, bodies=bodies)
        counts = {name: _count(name, listed, surface) for name, listed in fields.words.items()}
        for name, counter in counts.items():
            totals[name] += counter.total()
        counted.append(counts)
        for term in fields.negative:
            index.negative.setdefault(term, []).append(number)
    index.count = len(counted)
    average = {name: max(1.0, totals[name] / max(1, len(counted))) for name in FIELDS}
    for number, counts in enumerate(counted):
        _add(index, number, counts, average)
    index.surface = surface
    index.strong = sorted(set(surface.values()))
    return index


def _count(name: str, listed: Sequence[str], surface: dict[str, str]) -> Counter[str]:
    """Count the stems of a field; adjacent pairs too, except in the body."""
    if name == "body":
        raw = Counter(listed)
        counter: Counter[str] = Counter()
        for word, often in raw.items():
            if term := _term(word):
                counter[term] += often
        return counter
    kept = [word for word in listed if _term(word)]
    stems = [_term(word) for word in kept]
    surface.update(zip(kept, stems, strict=True))
    counter = Counter(stems)
    if name != "headings":
        counter.update(f"{left} {right}" for left, right in zip(stems, stems[1:], strict=False))
    return counter


@lru_cache(maxsize=200_000)
def _term(word: str) -> str:
    """Return the stem under which a word is indexed; "" for a stop word."""
    telling = word not in STOP and not (word.isdigit() or len(word) > 40) and (len(word) > 1 or word in "cr")
    return stem(word) if telling else ""


def _add(index: Index, number: int, counts: Mapping[str, Counter[str]], average: Mapping[str, float]) -> None:
    """Add a skill's weighted words to the index."""
    weighed: dict[str, float] = {}
    for name, counter in counts.items():
        weight, by_length = FIELDS[name]
        factor = weight / (1 - by_length + by_length * counter.total() / average[name])
        for term, often in counter.items():
            # In a long body, a frequent word says only a little more than a word that occurs twice.
            frequency = 1 + math.log(often) if name == "body" else often
            weighed[term] = weighed.get(term, 0.0) + factor * frequency
    postings = index.postings
    for term, weight in weighed.items():
        posting = postings.get(term)
        if posting is None:
            posting = postings[term] = Postings()
        posting.skills.append(number)
        posting.weights.append(weight)
