"""Rank skills for a request: a lexical router, offline and deterministic.

Scores are from 0 to 100. They sum up evidence: for each concept of the request, the rarity of the best matching term
(in nats) times its weight in the skill. A score relates the evidence to the chance level for a request of this length,
so that ``prefilter_min_score`` means the same among ten skills and among ten thousand.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from rapidfuzz import fuzz, process, utils

from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.errors import NotFound
from fireswarm.skills.packs.catalog import Catalog, Skill
from fireswarm.skills.routing.explain import explain
from fireswarm.skills.routing.index import Index, build, fields_of
from fireswarm.skills.routing.query import Concept, concepts
from fireswarm.storage.search.bm25 import SATURATION, saturate
from fireswarm.storage.search.words import stem

MIN_SCORE = 55.0
"""Skills below this score are not proposed (``prefilter_min_score`` of the specification)."""

TOP_K = 8

HALF_EVIDENCE = 1.3
HALF_EVIDENCE_PER_CONCEPT = 0.12
"""Evidence, in nats, for a score of 50: this base, plus this amount for each concept of the request.

Chosen on the development half of benchmarks/routing/prompts.json, so that correct skills pass 55 and most small talk
does not.
"""

NAMED_EVIDENCE = 6.0
"""Evidence, in nats, for a request that contains the name of a skill (of two words or more)."""

NEGATIVE_SHARE = 0.8
"""Share of a word's evidence that is deducted from a skill whose description excludes it."""

MAX_POSTINGS = 60_000
"""Maximum number of postings that are summed; beyond it, the most common words only compare the best skills so far.

This limits the time of a request with 20,000 skills.
"""

SPELLED_AMONG = 2_000
"""Maximum number of skills that are compared by spelling alone, which visits each of them."""

STILL_JUDGED = 400
"""Number of skills that remain candidates when MAX_POSTINGS is reached."""


class Router:
    """Skills indexed for routing. Create one per catalog and reuse it: the first ``route`` reads the skills' bodies."""

    def __init__(self, skills: Catalog | Iterable[Skill], *, bodies: bool = True) -> None:
        listed = skills.skills.values() if isinstance(skills, Catalog) else skills
        self.skills: tuple[Skill, ...] = tuple(sorted(listed, key=lambda skill: skill.name))
        self._numbers = {skill.name: number for number, skill in enumerate(self.skills)}
        self._bodies = bodies
        self._long_names = _long_names(self.skills)
        self._explained: dict[int, Mapping[str, frozenset[str]]] = {}

    @cached_property
    def index(self) -> Index:
        """The index, built on first use: a run whose skill is named does not need it."""
        return build(self.skills, bodies=self._bodies)

    def route(
        self,
        query: str,
        *,
        top_k: int = TOP_K,
        min_score: float = MIN_SCORE,
        among: Collection[str] | None = None,
    ) -> list[SkillCandidate]:
        """Return at most *top_k* skills with a score of *min_score* or more, best first, ties by name, with reasons.

        *among* restricts the choice to these names; names without a skill are ignored.
        """
        asked = concepts(query, self.index)
        allowed = None if among is None else {self._numbers[name] for name in among if name in self._numbers}
        named = self._named_in(query)
        evidence = self._evidence(asked, named)
        half = HALF_EVIDENCE + HALF_EVIDENCE_PER_CONCEPT * sum(1 for concept in asked if " " not in concept.word)
        candidates: list[SkillCandidate] = []
        chosen = ((worth, -number) for number, worth in evidence.items() if allowed is None or number in allowed)
        for worth, place in heapq.nlargest(top_k, chosen):
            score = round(100 * worth / (worth + half), 2) if worth > 0 else 0.0
            if score < min_score:
                break
            skill = self.skills[-place]
            reason = explain(self._words_of(-place), -place, asked, self.index, named=-place in named)
            candidates.append(SkillCandidate(skill_name=skill.name, score=score, reason=reason))
        if len(candidates) < top_k and min_score <= 0 and self.index.count <= SPELLED_AMONG:
            candidates += self._spelled_like(
                query, top_k - len(candidates), {self._numbers[c.skill_name] for c in candidates}, allowed
            )
        return candidates

    def _spelled_like(
        self, query: str, wanted: int, taken: Collection[int], allowed: Collection[int] | None
    ) -> list[SkillCandidate]:
        """Return skills without a matching word by similar spelling, for callers that accept any score."""
        left = {
            number: f"{skill.name} {skill.description}"
            for number, skill in enumerate(self.skills)
            if number not in taken and (allowed is None or number in allowed)
        }
        nearest = process.extract(
            query, left, scorer=fuzz.token_sort_ratio, processor=utils.default_process, limit=wanted
        )
        reason = "no matching words; similar spelling"
        return [
            SkillCandidate(skill_name=self.skills[number].name, score=0.0, reason=reason) for _, _, number in nearest
        ]

    def _evidence(self, asked: Sequence[Concept], named: Iterable[int]) -> dict[int, float]:
        """Return the evidence by number of the skill, without skills that match nothing."""
        totals: dict[int, float] = {}
        added = 0
        rare_first = sorted(asked, key=lambda concept: (_size(concept, self.index), concept.word))
        for concept in rare_first:
            size = _size(concept, self.index)
            if added + size > MAX_POSTINGS and totals:
                _judge(concept, totals, self.index)
            else:
                added += size
                _collect(concept, totals, self.index)
        _take_off(asked, totals, self.index)
        for number in named:
            totals[number] = totals.get(number, 0.0) + NAMED_EVIDENCE
        return totals

    def _named_in(self, query: str) -> list[int]:
        lowered = " ".join(re.split(r"[^a-z0-9]+", query.lower()))
        return [
            number
            for first in set(lowered.split()) for name, number in self._long_names.get(first, ())
            if f" {name} " in f" {lowered} "
        ]  # fmt: skip

    def _words_of(self, number: int) -> Mapping[str, frozenset[str]]:
        """Return the stems of a skill by field, for explanations; computed once, when it is first proposed."""
        known = self._explained.get(number)
        if known is None:
            fields = fields_of(self.skills[number], bodies=False).words
            known = self._explained[number] = {name: frozenset(map(stem, listed)) for name, listed in fields.items()}
        return known


def _long_names(skills: Sequence[Skill]) -> dict[str, list[tuple[str, int]]]:
    """Return names of two words or more, by their first word; names of a single word are treated like other words."""
    families: dict[str, list[tuple[str, int]]] = {}
    for number, skill in enumerate(skills):
        parts = skill.name.split("-")
        if len(parts) > 1:
            families.setdefault(parts[0], []).append((" ".join(parts), number))
    return families


def _size(concept: Concept, index: Index) -> int:
    return sum(len(index.postings[term.key].skills) for term in concept.terms)


def _collect(concept: Concept, totals: dict[int, float], index: Index) -> None:
    """Add the value of each skill's best term for *concept*."""
    best: dict[int, float] = {}
    for term in concept.terms:
        posting = index.postings[term.key]
        worth = concept.weight * term.worth
        for number, weight in zip(posting.skills, posting.weights, strict=True):
            value = worth * weight * (SATURATION + 1) / (weight + SATURATION)
            if value > best.get(number, 0.0):
                best[number] = value
    for number, value in best.items():
        totals[number] = totals.get(number, 0.0) + value


def _judge(concept: Concept, totals: dict[int, float], index: Index) -> None:
    """Like ``_collect``, but only for the best skills so far."""
    for number in heapq.nlargest(STILL_JUDGED, totals, key=lambda number: (totals[number], -number)):
        totals[number] += max(
            concept.weight * term.worth * saturate(index.postings[term.key].weight_in(number)) for term in concept.terms
        )


def _take_off(asked: Sequence[Concept], totals: dict[int, float], index: Index) -> None:
    for concept in asked:
        for term in concept.terms:
            if term.factor < 1.0:
                continue
            worth = NEGATIVE_SHARE * concept.weight * max(index.rarity(term.key), 1.0)
            for number in index.negative.get(term.key, ()):
                if number in totals:
                    totals[number] -= worth


def choose(objective: str, named: str | None, role_skills: Sequence[str], catalog: Catalog) -> Skill:
    """Return the named skill, or the role's best match for *objective*, or the role's first skill. Opens no file.

    Raises NotFound if a skill named by the task or the role card does not exist, or the role has none.
    """
    if named is not None:
        return catalog.get(named)
    if not role_skills:
        raise NotFound("the role has no skill and no model works for it: add a skill to its card, or set a key")
    skills = [catalog.get(name) for name in role_skills]
    best = Router(skills, bodies=False).route(objective, top_k=1) if len(skills) > 1 else []
    return catalog.get(best[0].skill_name) if best else skills[0]
