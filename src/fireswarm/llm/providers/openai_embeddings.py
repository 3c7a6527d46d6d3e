"""Embeddings through OpenAI's SDK, at OpenAI or any compatible endpoint: Ollama, vLLM, a gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2
import openai

from fireswarm.contracts.ports import Embedded, Embedder
from fireswarm.llm.providers.embeddings import TIMEOUT_SECONDS, check_vectors
from fireswarm.llm.providers.faults import MISSHAPEN, misshapen
from fireswarm.llm.providers.openai import PROVIDER, OpenAiModel
from fireswarm.llm.tokens import estimate_tokens
from fireswarm.settings.agent import ModelSettings


@dataclass(frozen=True, slots=True)
class OpenAiEmbedder:
    """One embedding model at one endpoint. Without a key, no credentials are sent."""

    name: str
    api_key: str | None
    base_url: str | None
    dimensions: int

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> Embedded:
        """Return a vector for each text; questions and documents are alike. Raises ModelUnavailable, ModelRejected."""
        model = OpenAiModel(self.name, self.api_key, base_url=self.base_url, timeout_seconds=TIMEOUT_SECONDS)
        try:
            answer = await model.client.embeddings.create(
                model=self.name,
                input=list(texts),
                dimensions=self.dimensions,
                encoding_format="float",
                extra_headers=model.headers,
            )
            vectors = [tuple(item.embedding) for item in sorted(answer.data, key=lambda item: item.index)]
            tokens = answer.usage.prompt_tokens if answer.usage else 0
        except (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise model.fault(error) from error
        except MISSHAPEN as error:
            raise misshapen(PROVIDER, error) from error
        finally:
            await model.aclose()
        check_vectors(PROVIDER, len(texts), vectors, self.dimensions)
        return Embedded(vectors, tokens or sum(map(estimate_tokens, texts)))


def open_embedder(model: ModelSettings, name: str, key: str, _env: Mapping[str, str], dimensions: int) -> Embedder:
    """Return an embedding model at OpenAI, or at an endpoint that needs no key."""
    return OpenAiEmbedder(name, key or None, model.chosen.base_url, dimensions)
