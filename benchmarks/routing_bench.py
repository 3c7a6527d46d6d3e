"""Routing: how often the right skill comes first or among eight, beside two baselines, among 66 to 20,000 skills.

Two sets of our own. The prompts of the first were written before the router was tuned; their hash divides them: what
was chosen was chosen on the development half, and the figures under "test" come from the other. The second, 52 skills
and 208 prompts in ``routing/unseen``, was written after the router by somebody who had seen nothing of it, and nothing
was chosen on it.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz, process, utils

from benchmarks.common import emit
from benchmarks.routing import distractors
from fireswarm.skills.packs.catalog import Skill, load_catalog
from fireswarm.skills.routing.benchmark import Labelled, Ranker, measure, read_labelled
from fireswarm.skills.routing.router import MIN_SCORE, Router
from fireswarm.storage.search.words import STOP, words

HERE = Path(__file__).resolve().parent / "routing"
UNSEEN = HERE / "unseen"
SIZES = (0, 2_000, 20_000)


def is_test(prompt: Labelled) -> bool:
    """Half of the prompts, by their hash."""
    return hashlib.sha256(prompt.query.encode()).digest()[0] % 2 == 0


def plain_stem(word: str) -> str:
    """The light stemming of the baseline: plural, -ing, -ed."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def bm25(skills: Sequence[Skill], k1: float = 1.2, b: float = 0.75) -> Ranker:
    """Plain BM25 over name and description, with stop words and light stemming."""

    def terms(text: str) -> list[str]:
        return [plain_stem(word) for word in words(text) if word not in STOP]

    documents = [Counter(terms(f"{skill.name} {skill.description}")) for skill in skills]
    average = sum(document.total() for document in documents) / len(documents)
    having = Counter(term for document in documents for term in document)
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, document in enumerate(documents):
        for term, often in document.items():
            postings.setdefault(term, []).append((number, often))

    def rank(query: str) -> list[str]:
        scores: dict[int, float] = {}
        for term in set(terms(query)):
            idf = math.log(1 + (len(documents) - having[term] + 0.5) / (having[term] + 0.5))
            for number, often in postings.get(term, ()):
                length = 1 - b + b * documents[number].total() / average
                scores[number] = scores.get(number, 0.0) + idf * often * (k1 + 1) / (often + k1 * length)
        return [skills[number].name for number in sorted(scores, key=lambda number: (-scores[number], number))[:8]]

    return rank


def partial_ratio(skills: Sequence[Skill]) -> Ranker:
    """The seed's prefilter: rapidfuzz partial ratio over name and description."""
    choices = {skill.name: f"{skill.name} {skill.description}" for skill in skills}

    def rank(query: str) -> list[str]:
        found = process.extract(query, choices, scorer=fuzz.partial_ratio, processor=utils.default_process, limit=8)
        return [name for _, _, name in found]

    return rank


def passing(router: Router, prompts: Sequence[Labelled]) -> float:
    """Share of prompts whose own skill reaches MIN_SCORE among the best eight."""
    found = [{c.skill_name for c in router.route(prompt.query, min_score=MIN_SCORE)} for prompt in prompts]
    return round(sum(prompt.skill in names for prompt, names in zip(prompts, found, strict=True)) / len(prompts), 4)


def run(extra: int) -> dict[str, Any]:
    """All figures among our skills and *extra* generated ones."""
    prompts = read_labelled(HERE / "prompts.json")
    off_topic = [line for line in (HERE / "off_topic.txt").read_text().splitlines() if line]
    test = [prompt for prompt in prompts if is_test(prompt)]
    with tempfile.TemporaryDirectory() as folder:
        distractors.write(Path(folder), max(0, extra - 66))
        started = time.perf_counter()
        skills = list(load_catalog([HERE / "skills", Path(folder)]).skills.values())
        loaded = time.perf_counter()
        router = Router(skills)
        assert router.index.count == len(skills)  # built on first use; here that is to be measured apart
        built = time.perf_counter()

    def rank(query: str) -> list[str]:
        return [candidate.skill_name for candidate in router.route(query, min_score=0)]

    figures: dict[str, Any] = {
        "skills": len(skills),
        "load_seconds": round(loaded - started, 3),
        "index_build_seconds": round(built - loaded, 3),
        "all": measure(rank, prompts),
        "test": measure(rank, test),
        "right_skill_passes_55": passing(router, test),
        "off_topic_passes_55": round(sum(bool(router.route(text)) for text in off_topic) / len(off_topic), 4),
    }
    if len(skills) <= 2_000:
        figures["bm25"] = measure(bm25(skills), prompts)
        figures["bm25_test"] = measure(bm25(skills), test)
        figures["partial_ratio"] = measure(partial_ratio(skills), prompts)
    return figures


def run_unseen(size: int) -> dict[str, Any]:
    """The router beside BM25 on the second set, among its 52 skills or *size* with generated ones."""
    prompts = read_labelled(UNSEEN / "prompts.json")
    with tempfile.TemporaryDirectory() as folder:
        distractors.write(Path(folder), max(0, size - 52))
        skills = list(load_catalog([UNSEEN / "skills", Path(folder)]).skills.values())
        router = Router(skills)
        assert router.index.count == len(skills)  # read while the folder is there

    def rank(query: str) -> list[str]:
        return [candidate.skill_name for candidate in router.route(query, min_score=0)]

    return {
        "skills": len(skills),
        "unseen": measure(rank, prompts),
        "unseen_passes_55": passing(router, prompts),
        "unseen_bm25": measure(bm25(skills), prompts),
    }


if __name__ == "__main__":
    for size in SIZES:
        emit("routing", **run(size))
    for size in SIZES[:2]:
        emit("routing_unseen", **run_unseen(size))
