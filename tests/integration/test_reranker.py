"""The embedding re-ranker, through the real SDK against a local server that computes embeddings by a simple rule."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fireswarm.errors import ConfigError
from fireswarm.llm.providers.embeddings import EmbeddingReranker, GeminiEmbedder
from fireswarm.runs.make_mind import make_reranker
from fireswarm.settings import load_agent_settings
from fireswarm.skills.packs.catalog import Catalog, load_catalog
from fireswarm.skills.routing.rerank import route_with
from fireswarm.skills.routing.router import Router
from tests.support.http import HttpServer, Request, Response

pytestmark = pytest.mark.anyio

SKILLS = {
    "tide-table": "Tells when the water at a harbour is high or low. Use for boats and harbours.",
    "boat-paint": "Chooses paint for boats at a harbour. Use for boats and harbours.",
}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    for name, description in SKILLS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n")
    return load_catalog([tmp_path])


class Embedder:
    """Embeds texts about water in one direction and all others in another; records the texts it received."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.status = 200

    def __call__(self, request: Request) -> Response:
        if self.status != 200:
            return Response(self.status, json.dumps({"error": {"code": self.status, "message": "no"}}).encode())
        asked: list[dict[str, Any]] = json.loads(request.body)["requests"]
        texts = ["".join(part["text"] for part in item["content"]["parts"]) for item in asked]  # a vector each
        self.texts += texts
        vectors = [{"values": [1.0, 0.1] if "water" in text or "tide" in text else [0.1, 1.0]} for text in texts]
        return Response(200, json.dumps({"embeddings": vectors}).encode())


@pytest.fixture
async def embedder() -> AsyncIterator[tuple[Embedder, str]]:
    rule = Embedder()
    async with HttpServer(rule).serving() as url:
        yield rule, url


async def test_embeddings_decide_the_order_when_words_do_not(catalog: Catalog, embedder: tuple[Embedder, str]) -> None:
    rule, url = embedder
    router = Router(catalog)
    query = "boats at the harbour: when is the tide out"
    reranker = EmbeddingReranker(GeminiEmbedder("gemini-embedding-2", "key", url))
    found = await route_with(router, query, reranker, min_score=0)
    assert [candidate.skill_name for candidate in found] == ["tide-table", "boat-paint"]
    assert "meaning 1.00" in found[0].reason
    sent = len(rule.texts)
    await route_with(router, query, reranker, min_score=0)
    assert len(rule.texts) == sent + 1, "descriptions are embedded once, and only the request again"


async def test_failing_reranker_keeps_the_lexical_order_and_reports_the_failure(
    catalog: Catalog, embedder: tuple[Embedder, str]
) -> None:
    rule, url = embedder
    rule.status = 503
    router = Router(catalog)
    found = await route_with(
        router, "paint a boat", EmbeddingReranker(GeminiEmbedder("gemini-embedding-2", "key", url)), min_score=0
    )
    assert [candidate.skill_name for candidate in found] == [
        candidate.skill_name for candidate in router.route("paint a boat", min_score=0)
    ]
    assert all("not reranked: gemini answered 503" in candidate.reason for candidate in found)


def test_reranker_without_an_api_key_is_a_config_error_naming_the_variable() -> None:
    settings = load_agent_settings(None, {"skills.reranker": "gemini"})
    with pytest.raises(ConfigError, match="GEMINI_API_KEY is not set"):
        make_reranker(settings, {})
