"""Re-ranking of candidates, such as by embeddings: the interface and its caller."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.errors import FireswarmError
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.routing.router import MIN_SCORE, TOP_K, Router

POOL = 4
"""Size of the pool to re-rank, as a multiple of the wanted number; a larger pool gives more candidates a chance."""


class Reranker(Protocol):
    """Re-ranks candidates. It may drop, reorder and rescore them (0 to 100), and explains that in ``reason``.

    If it raises FireswarmError, the lexical order is used.
    """

    async def rerank(
        self, query: str, candidates: Sequence[SkillCandidate], skills: Mapping[str, Skill]
    ) -> Sequence[SkillCandidate]:
        """Re-rank *candidates* for *query*; *skills* are their skills by name."""
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
    """Like ``Router.route``; a *reranker* first re-ranks a wider pool. Its failure is noted in the reasons."""
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
