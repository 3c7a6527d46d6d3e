"""Search of facts by meaning: an embedding model turns texts into vectors, and Firestore finds the nearest ones.

The vector of a fact is a document of its own, with the fact's id: facts stay small, and readable in the console. It is
made at the first recall after the fact was stored, also by hand. Without the model, recall goes by words alone.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import anyio

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.ports import Clock, Embedder, Merge, Snapshot, Store, vector_value
from fireswarm.errors import FireswarmError
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import VECTORS
from fireswarm.storage.documents.read import EPOCH
from fireswarm.storage.memory.fact_documents import value_text
from fireswarm.storage.memory.known_facts import KnownFacts, StoredFact

NEAREST = 50
"""Number of nearest facts that a search compares with those found by words."""

MAX_MADE = 500
"""Maximum number of facts of one recall whose vectors are looked up or made; the next recall goes on."""

BATCH = 100
"""Facts per read, call of the model and commit."""

MAX_TEXT_CHARS = 2_500
"""Maximum length of a text that is turned into a vector: a batch of them fits a request, in any script."""

REST_SECONDS = 60.0
"""Time without a search by meaning after a failure, so that recalls do not wait for it."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class FactVectors:
    """The vectors of the facts in a store.

    *open* returns the embedding model at the first use. *clean* removes secrets from a text that leaves the machine.
    *spent* is told the session, the model and the tokens of each call.
    """

    store: Store
    clock: Clock
    open: Callable[[], Embedder]
    clean: Callable[[str], str]
    spent: Callable[[str, str, int], Awaitable[None]]
    model: Embedder | None = None
    made: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    resting_until: datetime = EPOCH
    making: anyio.Lock = field(default_factory=anyio.Lock)

    async def nearness(self, session: str, scopes: Sequence[KnownFacts], query: str) -> dict[str, float]:
        """Return the facts nearest to *query* by id: 1 for the nearest, 0 for the last one. On failure, return none."""
        if self.clock.now() < self.resting_until or not any(known.facts for known in scopes):
            return {}
        try:
            if self.model is None:
                self.model = self.open()
            for known in scopes:
                await self._complete(self.model, session, known)
            asked = (await self._embed(self.model, session, [query], is_query=True))[0]
            found: dict[str, float] = {}
            for known in scopes:
                search = queries.nearest_facts(known.scope, known.name, self.model.name, asked, NEAREST)
                for snapshot in await self.store.query(search):
                    found[snapshot.id] = 1 - float((snapshot.data or {}).get("distance", 2.0))
        except FireswarmError as error:
            self.resting_until = self.clock.now() + timedelta(seconds=REST_SECONDS)
            _log.warning("memory is searched by words alone for %.0f s: %s", REST_SECONDS, error)
            return {}
        return _spread(found)

    async def _complete(self, model: Embedder, session: str, known: KnownFacts) -> None:
        """Store the missing vectors of a scope, or as many as one recall may."""
        async with self.making:
            missing = [
                (item, text)
                for item in known.facts.values()
                if self.made.get((known.scope, item.fact.fact_id)) != _digest(text := _text(item))
            ]
            for start in range(0, min(len(missing), MAX_MADE), BATCH):
                await self._make(model, session, known, missing[start : start + BATCH])

    async def _make(
        self, model: Embedder, session: str, known: KnownFacts, missing: Sequence[tuple[StoredFact, str]]
    ) -> None:
        """Store the vectors of some facts, unless another process did."""
        stored = await self.store.get_many([f"{VECTORS}/{item.fact.fact_id}" for item, _ in missing])
        pairs = list(zip(missing, stored, strict=True))
        new = [text for (_, text), snapshot in pairs if not _is_of(snapshot, model, text)]
        vectors = iter(await self._embed(model, session, new, is_query=False) if new else ())
        writes: list[Merge] = []
        for (item, text), snapshot in pairs:
            fields: dict[str, Any] = {"session_hash": item.session_hash, known.scope: known.name}
            if not _is_of(snapshot, model, text):
                fields |= {"model": model.name, "of": _digest(text), "vector": vector_value(next(vectors))}
            if any((snapshot.data or {}).get(name) != value for name, value in fields.items()):
                writes.append(Merge(snapshot.path, fields))
        if writes:
            await self.store.commit(writes)
        self.made |= {(known.scope, item.fact.fact_id): _digest(text) for item, text in missing}

    async def _embed(
        self, model: Embedder, session: str, texts: Sequence[str], *, is_query: bool
    ) -> Sequence[tuple[float, ...]]:
        answer = await model.embed([truncate(self.clean(text), MAX_TEXT_CHARS) for text in texts], is_query=is_query)
        await self.spent(session, model.name, answer.tokens)
        return answer.vectors


def _spread(found: dict[str, float]) -> dict[str, float]:
    """Return similarities between 0 for the least and 1 for the most similar: models differ in their usual values."""
    low, high = min(found.values(), default=0.0), max(found.values(), default=0.0)
    return {name: (near - low) / (high - low) if high > low else 1.0 for name, near in found.items()}


def _text(item: StoredFact) -> str:
    return f"{item.fact.bucket}, {item.fact.key}: {value_text(item.fact.value)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _is_of(snapshot: Snapshot, model: Embedder, text: str) -> bool:
    """Return True if the document has the vector of this text, by this model."""
    data = snapshot.data or {}
    return data.get("model") == model.name and data.get("of") == _digest(text)
