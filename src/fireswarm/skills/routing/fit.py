"""Fit of an objective to the abilities of code: the share of its words that are known.

The figures and lists were chosen on the parts ``chosen_on`` of ``objectives.yaml``, ``role_objectives.yaml`` and
``one_skill_objectives.yaml`` in ``tests/packs``, and evaluated on their parts ``held_out``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from rapidfuzz.distance import OSA

from fireswarm.contracts.limits import truncate
from fireswarm.skills.routing.parts import Clause, parts_of

THRESHOLD = 0.7
"""Minimum fit of an objective for code without a model."""

DECISIVE_WEIGHT = 3.0
"""Weight of a word or a form that asks for something that code cannot do."""

FIRST_WEIGHT = 2.0
"""Weight of the first word that counts, usually the verb, relative to 1 for the others."""

PRIOR = 0.5
"""Weight of unknown words that is assumed for every objective, so that a single known word does not mean a perfect fit.
"""

MAX_HEADER_BYTES = 65_536

MAX_QUOTED_CHARS = 200
"""Maximum characters of a quoted part of an objective."""

_IGNORED = """
a about all also an and any are as at be been being by can could did do does done each every for from get give given
had has have how i if in into is it its just let like look make may me might more most must my need next of off on one
only or our out over per please produce put same shall she should show since so some such take tell than that the
their them then there these they thing things this those to too up us use very want was way we were what when where
which while who will with within would write you your anybody anyone anything before cheers d else everything generate
got hello hey hi isn kindly ll m ought pls plz re really s someone something somewhere t teh thank thanks together
turn ve yet
"""
IGNORED = frozenset(_IGNORED.split())
"""Words that tell neither the wanted result nor its subject."""

_SUBJECTS = """
attachment code codebase csv dataset directory doc docs document documents documentation file files folder here minutes
note notes page pages project repo repository row rows source sources table text workspace
"""
SUBJECTS = frozenset(_SUBJECTS.split())
"""Words for what is worked on."""

_CHANGING = """
add answer book build compose convert delete deploy email explain fix implement improve install move publish
refactor remove rename repair replace rewrite send solve translate update
"""
_RESTRICTING = "don except excluding instead never no not unless why without"
DECISIVE = frozenset((*_CHANGING.split(), *_RESTRICTING.split()))
"""Words for more than reading, for unwanted things, and for reasons.

They count as unknown with a higher weight, unless a skill's ``asked_for`` has exactly that form.
"""

_FORM = re.compile(
    r"\b(?:in|as|into) (?:(?!(?:all|each|every|my|our|that|the|these|this|those|your)\b)\w{1,12} ){0,2}"
    r"(?:bullets?|paragraphs?|poems?|sentences?|tables?|words?)\b"
)
"""A form of answer that code cannot give."""

_ADVICE = re.compile(r"\bhow (?:(?:do|can|could|should|would) (?:i|we|you)|to)\b")
"""A question for advice, which code cannot answer, in contrast to one for figures, such as "how many"."""

_DELIVERING = """
display give let list make name output present print report return say share show state take tell
"""
DELIVERING = frozenset(_DELIVERING.split())
"""Orders to hand over a result, which every skill follows, if they name nobody else."""

_RESULTS = "amount answer count figure finding number outcome output result total"
RESULTS = frozenset(_RESULTS.split())
"""Words for the result of any skill."""

_QUOTED = re.compile(r"""(?<!\w)["'`“][^"'`“”]{2,400}+["'`”](?!\w)""")
_WORD = re.compile(r"[^\W_]+")
_SHORTEST_MISSPELT = 6
_SHORTEST_COMMON_MISSPELT = 4


@dataclass(frozen=True)
class Fit:
    """Fit from 0 to 1, and the words of the objective that are not known.

    ``undone`` has the parts that the code leaves undone if it does the others; ``part_score`` is the fit of the others.
    """

    score: float
    unknown: tuple[str, ...]
    undone: tuple[str, ...] = ()
    part_score: float = 0.0
    threshold: ClassVar[float] = THRESHOLD

    @property
    def enough(self) -> bool:
        """True if code can do all of the objective."""
        return self.score >= THRESHOLD and not self.undone

    @property
    def in_part(self) -> bool:
        """True if code can do the objective without its parts ``undone``."""
        return bool(self.undone) and self.part_score >= THRESHOLD

    @property
    def quoted_parts(self) -> str:
        """The undone parts in quotation marks, joined by commas."""
        return ", ".join(f"\u201c{truncate(' '.join(part.split()), MAX_QUOTED_CHARS)}\u201d" for part in self.undone)


@dataclass(frozen=True)
class _Known:
    """Roots of the words that ask, roots of all known words, and the phrases that ask."""

    asking: frozenset[str]
    asked_by: frozenset[str]
    roots: frozenset[str]
    phrases: tuple[str, ...]
    hints: tuple[str, ...]


def measure_fit(
    objective: str,
    asking: Iterable[str],
    known: Iterable[str],
    *,
    phrases: Collection[str] = (),
    hints: Collection[str] = (),
    target: Path | None = None,
    table: Path | None = None,
) -> Fit:
    """Compare the words of *objective* with the *asking* words, which name the wanted result, and the *known* texts.

    *phrases* in lower case name a wanted result as a whole; *hints* are phrases without weight. Without a phrase, a
    hint or an asking word, the fit is 0. Quoted texts and paths in the objective are ignored. The name of the *target*
    and the columns of the *table*, a CSV file, are known words. Raises OSError for an unreadable table.
    """
    asking = frozenset(asking)
    texts = [*known, *([target.name.replace("_", " ")] if target else ()), *(_columns(table) if table else ())]
    asked_by = frozenset(_root(word) for word in asking)
    roots = asked_by | {_root(word) for text in texts for word in _words_in(text)}
    words = _Known(asking, asked_by, roots, tuple(phrases), tuple(hints))
    parts = parts_of(objective)
    undone = [part for part in parts if not _covers(part, words)]
    if len(parts) == 1 or len(undone) == len(parts):
        return _compare(objective, words)
    told = [part for part in parts[1:] if _only_delivers(part, words)]
    fit = _compare(" ".join(part.core for part in parts if part not in told), words)
    if not undone:
        return fit
    rest = " ".join(part.core for part in parts if part not in (*undone, *told))
    return replace(fit, undone=tuple(part.text for part in undone), part_score=_compare(rest, words).score)


def _compare(objective: str, known: _Known) -> Fit:
    """Return the fit of an objective as a whole."""
    text = _plain(objective)
    found = [phrase for phrase in known.phrases if f" {phrase} " in f" {text} "]
    in_phrases = {_root(word) for phrase in found for word in phrase.split()}
    words = [_correct(word) for word in text.split()]
    counted = list(dict.fromkeys(word for word in words if word not in IGNORED and word not in SUBJECTS))
    weights = {word: FIRST_WEIGHT if place == 0 else 1.0 for place, word in enumerate(counted)}
    possible = [word for word in counted if word not in DECISIVE or word in known.asking]
    weights |= {word: DECISIVE_WEIGHT for word in counted if word not in possible}
    weights |= {form: DECISIVE_WEIGHT for form in _FORM.findall(text)}
    asked = {word for word in possible if _root(word) in in_phrases or _is_among(word, known.asked_by)}
    hinted = any(f" {hint} " in f" {text} " for hint in known.hints)
    if (not asked and not found and not hinted) or _ADVICE.search(text):
        return Fit(0.0, tuple(counted))
    fits = {word for word in possible if word in asked or _is_among(word, known.roots)}
    # Single words of a phrase such as "what is in" do not count.
    plain = any(weights.keys().isdisjoint(phrase.split()) for phrase in found)
    matched = sum(weights[word] for word in fits) + plain + any(word in SUBJECTS for word in words)
    missed = sum(weights.values()) - sum(weights[word] for word in fits)
    return Fit(round(matched / (matched + missed + PRIOR), 4), tuple(word for word in counted if word not in fits))


def _covers(part: Clause, known: _Known) -> bool:
    """Return True if code may do a part of an objective; a part that is no order and no question belongs to another."""
    if not part.order and not part.question:
        return True
    text = _plain(part.text)
    if any(f" {phrase} " in f" {text} " for phrase in (*known.phrases, *known.hints) if phrase not in IGNORED):
        return True
    words = [_correct(word) for word in text.split()]
    counted = [word for word in words if word not in IGNORED and word not in SUBJECTS and word != part.order]
    unknown = [word for word in counted if not _is_among(word, known.roots)]
    if part.question:
        return bool(counted) and 2 * len(unknown) <= len(counted)
    if part.order in known.asking or (part.order not in DECISIVE and _is_among(part.order, known.roots)):
        least = 2 if _is_among(part.order, known.asked_by) else 1
        return len(unknown) < least or len(unknown) < len(counted) or any(word in SUBJECTS for word in words)
    return _only_delivers(part, known)


def _only_delivers(part: Clause, known: _Known) -> bool:
    """Return True for an order to hand over the result of the others, such as "and tell me the number"."""
    words = [word for word in _plain(part.core).split() if word not in IGNORED and word not in SUBJECTS]
    unknown = [word for word in words if word != part.order and not _is_among(word, known.roots)]
    new = part.order not in known.asking and not _is_among(part.order, known.roots)
    return new and part.order in DELIVERING and all(word.removesuffix("s") in RESULTS for word in unknown)


def _plain(objective: str) -> str:
    """Return the words of an objective without quoted texts and paths."""
    return " ".join(_words_in(_without_paths(_QUOTED.sub(" ", objective))))


def _root(word: str) -> str:
    """Return a word without its usual endings, so that all its forms are equal."""
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, without numbers."""
    return [word for word in _WORD.findall(text.lower().replace("'s", "")) if not word.isdigit()]


def _columns(table: Path) -> list[str]:
    with table.open(encoding="utf-8", errors="replace", newline="") as file:
        header = next(csv.reader([file.readline(MAX_HEADER_BYTES)]), [])
    return [name.replace("_", " ") for name in header]


def _without_paths(text: str) -> str:
    """Return *text* without paths and file names."""
    return " ".join(token for token in text.split() if not _is_path(token.strip(".,;:!?()")))


def _is_path(token: str) -> bool:
    stem, dot, suffix = token.rpartition(".")
    return "/" in token or token.startswith("~") or (bool(stem and dot) and suffix.isalpha() and len(suffix) <= 5)


def _correct(word: str) -> str:
    """Return the ignored word or subject from which *word* differs by one typo, or *word* itself."""
    if len(word) < _SHORTEST_COMMON_MISSPELT or word in IGNORED or word in SUBJECTS:
        return word
    near = (
        common for common in (*sorted(SUBJECTS), *sorted(IGNORED))
        if len(common) >= _SHORTEST_COMMON_MISSPELT and common[0] == word[0]
        and OSA.distance(common, word, score_cutoff=1) <= 1
    )  # fmt: skip
    return next(near, word)


def _is_among(word: str, roots: Collection[str]) -> bool:
    """Return True if *word* is among *roots*; a longer word may have one typo."""
    key = _root(word)
    if key in roots:
        return True
    if len(word) < _SHORTEST_MISSPELT:
        return False
    return any(known[0] == key[0] and OSA.distance(known, key, score_cutoff=1) <= 1 for known in roots)
