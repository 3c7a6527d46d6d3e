"""Choose a template for an objective by weighted words and phrases, with reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from fireswarm import format_number

from .target import Target
from .templates import FALLBACK, Template

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_SHORTEST_MISSPELT = 6
"""Minimum length of a word that may have a typo: ``list`` and ``last`` are both words."""

CSV_BONUS = 3.0
"""Bonus of CSV templates for a CSV file as the target; it exceeds the weight of one keyword."""


@dataclass(frozen=True)
class Match:
    """Score of a template, and the reason."""

    template: Template
    score: float
    reasons: tuple[str, ...]
    usable: bool


def rank_templates(templates: list[Template], objective: str, target: Target | None) -> list[Match]:
    """Score every template, best first; the fallback scores zero and comes after any that fits."""
    words = _WORD.findall(objective.lower())
    text = " ".join(words)
    matches = [_score(template, words, text, target) for template in templates]
    return sorted(matches, key=lambda match: (not match.usable, -match.score, match.template.name))


def choose(matches: list[Match]) -> Match | None:
    """Return the best usable template with a positive score, or the fallback if that is usable."""
    for match in matches:
        if match.usable and match.score > 0 and match.template.name != FALLBACK:
            return match
    return next((match for match in matches if match.usable and match.template.name == FALLBACK), None)


def wanted(matches: list[Match]) -> Match | None:
    """Return the template with the best word score, even if its needs are unmet."""
    best = max(matches, key=lambda match: (match.score, match.template.name), default=None)
    return best if best is not None and best.score > 0 else None


def _score(template: Template, words: list[str], text: str, target: Target | None) -> Match:
    reasons: list[str] = []
    score = 0.0
    for keyword, weight in template.match.keywords.items():
        hit = _found(keyword, words)
        if hit:
            score += weight
            reasons.append(f"{hit} +{format_number(weight)}")
    for phrase, weight in template.match.phrases.items():
        if f" {phrase} " in f" {text} ":
            score += weight
            reasons.append(f'"{phrase}" +{format_number(weight)}')
    if template.needs.path == "csv" and target is not None and target.kind == "csv":
        score += CSV_BONUS
        reasons.append(f"the path is a CSV file +{format_number(CSV_BONUS)}")
    return Match(template, score, tuple(reasons), _usable(template, target))


def _found(keyword: str, words: list[str]) -> str:
    """Return the word that matches *keyword*: the keyword itself, or a longer word with one typo."""
    if keyword in words:
        return keyword
    if len(keyword) < _SHORTEST_MISSPELT:
        return ""
    near = (word for word in words if word[0] == keyword[0] and OSA.distance(word, keyword, score_cutoff=1) <= 1)
    return next(near, "")


def _usable(template: Template, target: Target | None) -> bool:
    if target is None:
        return False
    if template.needs.path == "csv":
        return target.csv is not None
    return template.needs.path == "any" or target.kind == "folder"
