"""Gemini's embeddings, for memory and for the re-ranker of skills.

The re-ranker moves a candidate by at most half of ``WEIGHT`` points: words decide the order, meaning breaks ties and
finds paraphrases.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
from google import genai
from google.genai import errors, types

from fireswarm.contracts.ports import Embedded, Embedder
from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.llm.providers.access import EMBEDDING_SECONDS, KeyAccess
from fireswarm.llm.providers.faults import check_vectors, unreachable
from fireswarm.llm.providers.gemini import API_VERSION, PROVIDER, VERTEX_VERSION, client_place
from fireswarm.llm.tokens import estimate_tokens
from fireswarm.settings.agent import ModelSettings
from fireswarm.skills.packs.catalog import Skill

if TYPE_CHECKING:
    from fireswarm.llm.providers.google_access import GoogleAccess

WEIGHT = 40.0
"""Points between the most similar and the least similar candidate of the pool."""

BATCH = 100
"""Maximum texts per request of the API."""

REMEMBERED = 20_000
"""Maximum number of cached vectors, one per skill, for the life of the process."""

_BY_TASK = re.compile(r"gemini-embedding-001|text-embedding|text-multilingual")
"""Models that take the task as a parameter; newer ones read it in the text."""

_QUESTION, _DOCUMENT = "task: search result | query: {}", "title: none | text: {}"


@dataclass(frozen=True, slots=True)
class GeminiEmbedder:
    """Gemini's embeddings, by a key or, with *access*, on Vertex AI. ``dimensions`` 0 is the model's own size."""

    name: str
    api_key: str | None
    base_url: str | None = None
    dimensions: int = 0
    access: GoogleAccess | None = None

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> Embedded:
        """Return a vector for each text. Raises ModelUnavailable or ModelRejected."""
        vectors: list[tuple[float, ...]] = []
        access: KeyAccess = self.access or KeyAccess(PROVIDER)
        token = await access.prepare()
        by_task = _BY_TASK.search(self.name) is not None
        task = ("RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT") if by_task else None
        config = types.EmbedContentConfig(task_type=task, output_dimensionality=self.dimensions or None)
        form = "{}" if by_task else _QUESTION if is_query else _DOCUMENT
        try:
            async with httpx2.AsyncClient(timeout=EMBEDDING_SECONDS) as http:
                client = genai.Client(
                    **client_place(self.api_key, self.access),
                    http_options=types.HttpOptions(
                        base_url=self.base_url,
                        api_version=VERTEX_VERSION if self.access else API_VERSION,
                        retry_options=types.HttpRetryOptions(attempts=1),
                        httpx_async_client=http,
                    ),
                )
                for at in range(0, len(texts), BATCH):
                    # A list of texts would become one document with a single vector.
                    contents: list[Any] = [
                        types.Content(parts=[types.Part(text=form.format(text))]) for text in texts[at : at + BATCH]
                    ]
                    answer = await client.aio.models.embed_content(model=self.name, contents=contents, config=config)
                    vectors += [tuple(item.values or ()) for item in answer.embeddings or ()]
        except errors.APIError as error:
            message = error.message or str(error)
            raise access.refusal(int(error.code or 500), message, {}, token) from error
        except (httpx2.HTTPError, json.JSONDecodeError, errors.UnknownApiResponseError) as error:
            raise unreachable(access.provider, error) from error
        except access.faults as error:
            raise access.fault_of(error) from error
        access.accept()
        check_vectors(access.provider, len(texts), vectors, self.dimensions)
        return Embedded(vectors, sum(map(estimate_tokens, texts)))


@dataclass(slots=True)
class EmbeddingReranker:
    """Ranks candidates by the cosine of their embeddings. Raises ModelUnavailable and ModelRejected like any call."""

    embedder: Embedder
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
        asked = (await self.embedder.embed([query], is_query=True)).vectors[0]
        described = (await self.embedder.embed(new, is_query=False)).vectors if new else ()
        self._known |= dict(zip(new, described, strict=True))
        nearness = [_cosine(asked, self._known[text]) for text in texts]
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


def open_by_key(model: ModelSettings, name: str, key: str, _env: Mapping[str, str], dimensions: int) -> Embedder:
    """Return an embedding model of Gemini, by a key."""
    return GeminiEmbedder(name, key, model.chosen.base_url, dimensions)


def open_on_vertex(model: ModelSettings, name: str, _key: str, env: Mapping[str, str], dimensions: int) -> Embedder:
    """Return an embedding model of Gemini on Vertex AI, by Application Default Credentials."""
    from fireswarm.llm.providers.google_access import google_access

    return GeminiEmbedder(name, None, model.chosen.base_url, dimensions, google_access(model, env, sends=True))


def _skill_text(skill: Skill) -> str:
    return f"{skill.name.replace('-', ' ')}: {skill.description} {' '.join(skill.tags)}".strip()


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
