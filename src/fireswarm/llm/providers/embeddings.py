"""A re-ranker: Gemini embeddings of the request and of the candidates' descriptions.

It moves a candidate by at most half of ``WEIGHT`` points: words decide the order, meaning breaks ties and finds
paraphrases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.llm.providers.faults import from_status, unreachable
from fireswarm.skills.packs.catalog import Skill

WEIGHT = 40.0
"""Points between the most similar and the least similar candidate of the pool."""

BATCH = 100
"""Maximum texts per request of the API."""

REMEMBERED = 20_000
"""Maximum number of cached vectors, one per skill, for the life of the process."""


@dataclass(slots=True)
class GeminiReranker:
    """Ranks candidates by the cosine of their embeddings. Raises ModelUnavailable and ModelRejected like any call."""

    api_key: str
    model: str
    base_url: str | None = None
    timeout_seconds: float = 10.0
    _known: dict[str, tuple[float, ...]] = field(default_factory=dict)

    async def rerank(
        self, query: str, candidates: Sequence[SkillCandidate], skills: Mapping[str, Skill]
    ) -> Sequence[SkillCandidate]:
        """Re-rank *candidates*; cached embeddings of descriptions are not requested again."""
        if len(candidates) < 2:
            return candidates
        texts = [_skill_text(skills[candidate.skill_name]) for candidate in candidates]
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if len(self._known) + len(new) > REMEMBERED:
            self._known.clear()
            new = list(dict.fromkeys(texts))
        vectors = await self._embed([query], "RETRIEVAL_QUERY")
        for text, vector in zip(new, await self._embed(new, "RETRIEVAL_DOCUMENT"), strict=True):
            self._known[text] = vector
        nearness = [_cosine(vectors[0], self._known[text]) for text in texts]
        low, high = min(nearness), max(nearness)
        span = (high - low) or 1.0
        return [
            candidate.model_copy(
                update={
                    "score": min(100.0, max(0.0, round(candidate.score + WEIGHT * ((near - low) / span - 0.5), 2))),
                    "reason": f"{candidate.reason}; meaning {near:.2f}, {low:.2f} to {high:.2f} among the candidates",
                }
            )
            for candidate, near in zip(candidates, nearness, strict=True)
        ]

    async def _embed(self, texts: Sequence[str], task: str) -> list[tuple[float, ...]]:
        """Return one vector per text. Raises ModelUnavailable or ModelRejected."""
        if not texts:
            return []
        vectors: list[tuple[float, ...]] = []
        try:
            async with httpx2.AsyncClient(timeout=self.timeout_seconds) as http:
                client = genai.Client(
                    api_key=self.api_key,
                    http_options=types.HttpOptions(
                        base_url=self.base_url,
                        retry_options=types.HttpRetryOptions(attempts=1),
                        httpx_async_client=http,
                    ),
                )
                for at in range(0, len(texts), BATCH):
                    contents: list[Any] = list(texts[at : at + BATCH])
                    answer = await client.aio.models.embed_content(
                        model=self.model, contents=contents, config=types.EmbedContentConfig(task_type=task)
                    )
                    vectors += [tuple(item.values or ()) for item in answer.embeddings or ()]
        except errors.APIError as error:
            raise from_status("gemini", int(error.code or 500), error.message or str(error)) from error
        except (httpx2.HTTPError, json.JSONDecodeError, errors.UnknownApiResponseError) as error:
            raise unreachable("gemini", error) from error
        if len(vectors) != len(texts):
            raise unreachable("gemini", ValueError(f"{len(texts)} texts were sent, {len(vectors)} vectors came back"))
        return vectors


def _skill_text(skill: Skill) -> str:
    return f"{skill.name.replace('-', ' ')}: {skill.description} {' '.join(skill.tags)}".strip()


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
