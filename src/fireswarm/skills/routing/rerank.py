"""A second opinion on the order of candidates, such as embeddings give: the interface, and where it is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.errors import FireswarmError
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.routing.router import MIN_SCORE, TOP_K, Router

POOL = 4
"""Candidates that are judged anew, as a multiple of those wanted: what the words ranked twentieth can still win."""


class Reranker(Protocol):
    """Judges candidates anew. It may drop, reorder and rescore them (0 to 100), and says why in ``reason``.

    FireswarmError when it cannot: the lexical order then stands.
    """

    async def rerank(
        self, query: str, candidates: Sequence[SkillCandidate], skills: Mapping[str, Skill]
    ) -> Sequence[SkillCandidate]:
        """Judge *candidates* for *query*; *skills* are theirs, by name."""
        ...


async def route_with(
    router: Router,
    query: str,
    reranker: Reranker | None,
    *,
    top_k: int = TOP_K,
    min_score: float = MIN_SCORE,
    among: Collection[str] | None = None,
) -> list[SkillCandidate]:
    """As ``Router.route``; with a *reranker*, a wider pool is judged by it first. A reranker that fails is said."""
    if reranker is None:
        return router.route(query, top_k=top_k, min_score=min_score, among=among)
    pool = router.route(query, top_k=POOL * top_k, min_score=0.0, among=among)
    known = {candidate.skill_name for candidate in pool}
    try:
        judged = await reranker.rerank(
            query, pool, {skill.name: skill for skill in router.skills if skill.name in known}
        )
    except FireswarmError as error:
        note = f"; not reranked: {error}"
        judged = [candidate.model_copy(update={"reason": candidate.reason + note}) for candidate in pool]
    kept = [candidate for candidate in judged if candidate.score >= min_score and candidate.skill_name in known]
    return sorted(kept, key=lambda candidate: (-candidate.score, candidate.skill_name))[:top_k]
