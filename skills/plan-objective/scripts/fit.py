"""Fit of an objective to the templates: the share of its words that a template can act on.

The figures were chosen on the half ``chosen_on`` of ``tests/packs/objectives.yaml``; its other half measures them.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from rapidfuzz.distance import OSA

from .target import Target
from .templates import TEMPLATES, Template

THRESHOLD = 0.7
"""Lowest fit of an objective that is planned without a model."""

FIRST_WEIGHT = 2.0
"""Weight of the first word that counts, usually the verb, relative to 1 for the others."""

PRIOR = 0.5
"""Weight of unknown words that every objective is assumed to have, so that one known word alone is not certainty."""

ASKING_WEIGHT = 2.0
"""Lowest weight of a template's keyword that says what is wanted. A fit needs such a word, or a phrase."""

MAX_HEADER_BYTES = 65_536

_QUOTED = re.compile(r"""(?<!\w)["'`“][^"'`“”]{2,400}+["'`”](?!\w)""")
_WORD = re.compile(r"[^\W_]+")
_SHORTEST_MISSPELT = 6


@dataclass(frozen=True)
class Fit:
    """Fit from 0 to 1, and the words of the objective that no template knows."""

    score: float
    unknown: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """True if the objective can be planned without a model."""
        return self.score >= THRESHOLD


def measure(objective: str, templates: list[Template], target: Target | None) -> Fit:
    """Compare the words of *objective* with the words of the templates and of the target."""
    ignored, subjects = _vocabulary()
    asking, known = _words_of(templates)
    known |= _words_in(target)
    text = " ".join(_words(_without_paths(_QUOTED.sub(" ", objective))))
    phrases = [phrase for template in templates for phrase in template.match.phrases if f" {phrase} " in f" {text} "]
    in_phrases = {root(word) for phrase in phrases for word in phrase.split()}
    counted = list(dict.fromkeys(word for word in text.split() if word not in ignored and word not in subjects))
    weights = {word: FIRST_WEIGHT if place == 0 else 1.0 for place, word in enumerate(counted)}
    asked = {word for word in counted if root(word) in in_phrases or _found(word, asking)}
    if not asked and not phrases:
        return Fit(0.0, tuple(counted))
    fits = {word for word in counted if word in asked or _found(word, known)}
    # Of a phrase such as "what is in", no word counts by itself.
    plain = any(weights.keys().isdisjoint(phrase.split()) for phrase in phrases)
    matched = sum(weights[word] for word in fits) + plain + any(word in subjects for word in text.split())
    missed = sum(weights.values()) - sum(weights[word] for word in fits)
    return Fit(round(matched / (matched + missed + PRIOR), 4), tuple(word for word in counted if word not in fits))


def root(word: str) -> str:
    """Return a word without its usual endings, so that its forms are equal."""
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _without_paths(text: str) -> str:
    """Return *text* without paths and file names."""
    return " ".join(token for token in text.split() if not _is_path(token.strip(".,;:!?()")))


def _is_path(token: str) -> bool:
    stem, dot, suffix = token.rpartition(".")
    return "/" in token or token.startswith("~") or (bool(stem and dot) and suffix.isalpha() and len(suffix) <= 5)


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower().replace("'s", "")) if not word.isdigit()]


def _words_of(templates: list[Template]) -> tuple[set[str], set[str]]:
    """Return the roots of the words that say what is wanted, and of all words of the templates."""
    weights = [item for template in templates for item in template.match.keywords.items()]
    asking = {root(word) for word, weight in weights if weight >= ASKING_WEIGHT}
    texts = [text for template in templates for text in (template.description, *template.examples)]
    return asking, {root(word) for word, _ in weights} | {root(word) for text in texts for word in _words(text)}


def _words_in(target: Target | None) -> set[str]:
    """Return the roots of the words of the target's name and of a table's columns."""
    if target is None:
        return set()
    names = [target.path.name, *_columns(target.csv)]
    return {root(word) for name in names for word in _words(name.replace("_", " "))}


def _columns(table: Path | None) -> list[str]:
    if table is None:
        return []
    with table.open(encoding="utf-8", errors="replace", newline="") as file:
        return next(csv.reader([file.readline(MAX_HEADER_BYTES)]), [])


def _found(word: str, roots: set[str]) -> bool:
    """Return True if *word* is among *roots*, for longer words also with a single typo."""
    key = root(word)
    if key in roots:
        return True
    if len(word) < _SHORTEST_MISSPELT:
        return False
    return any(known[0] == key[0] and OSA.distance(known, key, score_cutoff=1) <= 1 for known in roots)


@cache
def _vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    listed = yaml.safe_load((TEMPLATES.parent / "vocabulary.yaml").read_text(encoding="utf-8"))
    return frozenset(listed["ignored"].split()), frozenset(listed["subjects"].split())
