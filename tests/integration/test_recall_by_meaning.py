"""Recall by meaning: vectors of an embedding model, made through the real SDKs, kept and searched in Firestore."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Embedded
from fireswarm.contracts.skills.skill import Fact
from fireswarm.errors import ConfigError, ModelRejected, ModelUnavailable
from fireswarm.llm.providers.embeddings import GeminiEmbedder
from fireswarm.llm.providers.openai import OpenAiEmbedder
from fireswarm.runs.model_adapters import embedding_model, open_embedder
from fireswarm.settings import Settings
from fireswarm.settings.load import load_settings
from fireswarm.storage.documents.indexes import VECTOR_DIMENSIONS
from fireswarm.storage.documents.paths import MEMORY, VECTORS
from fireswarm.storage.memory import Memory
from fireswarm.storage.memory.vectors import REST_SECONDS, FactVectors
from tests.support.http import HttpServer, Request, Response
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

TOPICS = ("database postgres tables", "coffee espresso beans", "deploy release production")


class Topics:
    """An embedding model in which a text's direction is the topic whose words it has; it counts what it was sent."""

    name = "topics"
    dimensions = VECTOR_DIMENSIONS

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fails: Exception | None = None

    def vector(self, text: str) -> tuple[float, ...]:
        near = [sum(word in text.lower() for word in topic.split()) + 0.01 for topic in TOPICS]
        return (*near, *([0.0] * (self.dimensions - len(near))))

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> Embedded:
        if self.fails is not None:
            raise self.fails
        self.texts += texts
        return Embedded([self.vector(text) for text in texts], 10 * len(texts))


class Kit:
    """A memory with vectors, as one process has it."""

    def __init__(self, swarm: SwarmRig, model: Topics, project: str = "") -> None:
        self.spent: list[tuple[str, str, int]] = []

        async def count(session: str, name: str, tokens: int) -> None:
            self.spent.append((session, name, tokens))

        def clean(text: str) -> str:
            return text.replace("hunter2", "[redacted]")

        self.vectors = FactVectors(swarm.store, swarm.clock, lambda: model, clean, count)
        self.memory = Memory(swarm.store, swarm.clock, project, self.vectors)

    async def learn(self, session: str = "s1", **facts: str) -> None:
        writes = await self.memory.learn(session, "t1", [Fact(bucket="b", key=key, value=facts[key]) for key in facts])
        await self.memory.store.commit(writes)

    async def keys(self, query: str, session: str = "s1", limit: int = 20, share: float = 0.0) -> list[str]:
        return [fact.key for fact in await self.memory.recall(session, query, limit, share_of_best=share)]


FACTS = {
    "store": "We keep rows in Postgres.",
    "machine": "An espresso takes 25 seconds.",
    "ship": "Release on Mondays.",
}


async def test_a_fact_without_a_common_word_is_found_by_its_meaning(both: SwarmRig) -> None:
    model = Topics()
    kit = Kit(both, model)
    await kit.learn(**FACTS)
    assert (await kit.keys("which database?"))[0] == "store"
    assert (await kit.keys("how long for coffee"))[0] == "machine"
    assert await kit.keys("which database?", share=0.9) == ["store"], "the others do not fit"
    assert await Memory(both.store, both.clock).recall("s1", "which database?") == [], "words alone find none"


async def test_words_count_more_than_meaning(both: SwarmRig) -> None:
    kit = Kit(both, Topics())
    await kit.learn(rq="Its database needs tables.", other="Postgres tables, a database.")
    assert (await kit.keys("rq"))[0] == "rq"


async def test_a_vector_is_made_once_by_all_processes_and_again_after_a_change(both: SwarmRig) -> None:
    one, other = Topics(), Topics()
    first, second = Kit(both, one), Kit(both, other)
    await first.learn(**FACTS)
    await first.keys("database")
    await first.keys("coffee")
    assert len(one.texts) == 3 + 2
    await second.keys("database")
    assert len(other.texts) == 1, "only the query"
    await first.learn(store="We keep rows in tables of beans.")
    await first.keys("database")
    assert one.texts[5:] == ["b, store: We keep rows in tables of beans.", "database"]
    assert first.spent == [
        ("s1", "topics", 30), ("s1", "topics", 10), ("s1", "topics", 10), ("s1", "topics", 10), ("s1", "topics", 10)
    ]  # fmt: skip


async def test_a_document_by_hand_gets_a_vector_and_a_wrong_one_is_not_told(both: SwarmRig) -> None:
    kit = Kit(both, Topics())
    await both.store.commit(
        [Create(f"{MEMORY}/mine", {"type": "fact", "session_hash": "s1", "value": "Beans are in the kitchen."})]
    )
    assert await kit.keys("coffee") == ["mine"]
    await kit.memory.mark("mine", wrong=True)
    assert await kit.keys("coffee") == []


async def test_sessions_stay_apart_and_a_project_shares(both: SwarmRig) -> None:
    model = Topics()
    apart, shared = Kit(both, model), Kit(both, model, project="shop")
    await apart.learn(session="s2", store="Postgres")
    assert await apart.keys("database", session="s1") == []
    await shared.learn(session="s2", shop="Tables in Postgres")
    await apart.keys("database", session="s2")  # makes the vector without the project
    assert await shared.keys("database", session="s1") == ["shop"]


async def test_a_forgotten_fact_loses_its_vector(both: SwarmRig) -> None:
    kit = Kit(both, Topics())
    await kit.learn(store="Postgres")
    await kit.keys("database")
    path = next(iter(kit.memory.known.values())).facts
    (name,) = path
    assert (await both.store.get(f"{VECTORS}/{name}")).data is not None
    await kit.memory.forget(name)
    assert (await both.store.get(f"{VECTORS}/{name}")).data is None


async def test_without_the_model_words_are_searched_and_the_model_rests(
    both: SwarmRig, caplog: pytest.LogCaptureFixture
) -> None:
    model = Topics()
    kit = Kit(both, model)
    await kit.learn(**FACTS)
    model.fails = ModelUnavailable("the service is down")
    assert await kit.keys("postgres") == ["store"]
    assert await kit.keys("database") == []
    assert caplog.text.count("the service is down") == 1
    model.fails = None
    await both.clock.advance(REST_SECONDS + 1)
    assert (await kit.keys("database"))[0] == "store"


async def test_secrets_do_not_reach_the_model(both: SwarmRig) -> None:
    model = Topics()
    kit = Kit(both, model)
    await kit.learn(store="The password is hunter2.")
    await kit.keys("hunter2?")
    assert not any("hunter2" in text for text in model.texts)


class Server:
    """Both providers' embeddings: the vector is made of the text's hash."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.status, self.size = 200, 0

    def vector(self, text: str, size: int) -> list[float]:
        return [byte / 255 for byte in hashlib.shake_256(text.encode()).digest(self.size or size)]

    def __call__(self, request: Request) -> Response:
        body = json.loads(request.body)
        self.bodies.append(body)
        self.keys.append(request.headers.get("authorization", request.headers.get("x-goog-api-key", "")))
        if self.status != 200:
            return Response(self.status, json.dumps({"error": {"code": self.status, "message": "no"}}).encode())
        if "input" in body:
            assert body["encoding_format"] == "float"
            data = [
                {"object": "embedding", "index": at, "embedding": self.vector(text, body["dimensions"])}
                for at, text in enumerate(body["input"])
            ]
            usage = {"prompt_tokens": 7, "total_tokens": 7}
            answer: dict[str, Any] = {"object": "list", "model": body["model"], "data": data[::-1], "usage": usage}
        else:
            made = [
                self.vector("".join(part["text"] for part in item["content"]["parts"]), item["outputDimensionality"])
                for item in body["requests"]
            ]
            answer = {"embeddings": [{"values": values} for values in made]}
        return Response(200, json.dumps(answer).encode())


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, str]]:
    rule = Server()
    async with HttpServer(rule).serving() as url:
        yield rule, url


async def test_gemini_and_openai_are_asked_for_vectors_of_the_index(server: tuple[Server, str]) -> None:
    rule, url = server
    gemini = GeminiEmbedder("gemini-embedding-2", "key-g", url, VECTOR_DIMENSIONS)
    openai = OpenAiEmbedder("nomic", "key-o", f"{url}/v1", VECTOR_DIMENSIONS)
    for model in (gemini, openai):
        answer = await model.embed(["one", "two"], is_query=False)
        assert [len(each) for each in answer.vectors] == [VECTOR_DIMENSIONS] * 2
        sent = "title: none | text: one" if model is gemini else "one"
        assert answer.vectors[0] == tuple(rule.vector(sent, VECTOR_DIMENSIONS)), "in the order of the texts"
        assert answer.tokens > 0
    assert rule.keys[:2] == ["key-g", "Bearer key-o"]
    assert "taskType" not in rule.bodies[0]["requests"][0]
    await GeminiEmbedder("gemini-embedding-001", "key-g", url, VECTOR_DIMENSIONS).embed(["one"], is_query=True)
    assert rule.bodies[-1]["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    await OpenAiEmbedder("nomic", None, f"{url}/v1", VECTOR_DIMENSIONS).embed(["x"], is_query=True)
    assert rule.keys[-1] == "", "no key, no credentials"


@pytest.mark.parametrize(("status", "error"), [(500, ModelUnavailable), (401, ModelRejected)])
async def test_a_refusal_is_an_error_of_the_model(
    server: tuple[Server, str], status: int, error: type[Exception]
) -> None:
    rule, url = server
    rule.status = status
    for model in (GeminiEmbedder("m", "k", url, 8), OpenAiEmbedder("m", "k", f"{url}/v1", 8)):
        with pytest.raises(error):
            await model.embed(["one"], is_query=True)


async def test_vectors_of_another_size_are_refused(server: tuple[Server, str]) -> None:
    rule, url = server
    rule.size = 12
    for model in (GeminiEmbedder("m", "k", url, 8), OpenAiEmbedder("m", "k", f"{url}/v1", 8)):
        with pytest.raises(ModelUnavailable, match="the vectors have 12 numbers, and 8 were asked for"):
            await model.embed(["one"], is_query=True)


def _settings(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "swarm.yaml").write_text(text)
    return load_settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("{}", {"GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, None),
        ("model: {provider: gemini}", {"GEMINI_API_KEY": "k"}, "gemini:gemini-embedding-2"),
        ("model: {provider: gemini}", {}, None),
        ("model: {provider: openai, name: m}", {"OPENAI_API_KEY": "k"}, "openai:text-embedding-3-small"),
        ("model: {provider: openai, name: m, providers: {openai: {base_url: 'http://127.0.0.1:1/v1'}}}", {}, None),
        (
            "{model: {provider: openai, name: m, providers: {openai: {base_url: 'http://127.0.0.1:1/v1'}}},"
            " memory: {embedding_model: nomic}}",
            {},
            "openai:nomic",
        ),
        ("memory: {embeddings: gemini}", {}, "gemini:gemini-embedding-2"),
        ("{model: {provider: gemini}, memory: {embeddings: none}}", {"GEMINI_API_KEY": "k"}, None),
    ],
)
def test_the_providers_embeddings_are_used_if_it_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, environment: dict[str, str], expected: str | None
) -> None:
    monkeypatch.setenv("FIRESWARM_TRUST_SETTINGS", "1")
    settings = _settings(tmp_path, text)
    model = embedding_model(settings, settings.memory, environment)
    assert (None if model is None else model.full_name) == expected
    if model is not None and environment:
        assert open_embedder(settings, model, environment, 256).name == model.name


def test_a_strangers_file_cannot_choose_embeddings_that_the_account_pays_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="memory.embeddings can"):
        _settings(tmp_path, "memory: {embeddings: gemini-vertex}")
