"""The facts and summaries of one session or project, held in memory and ranked by words.

The first recall reads all documents. Later ones read what was stored since, count the documents, and read all again if
the count differs or some time has passed: an edit by hand changes no ``created_at``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import anyio

from fireswarm.contracts.ports import Clock, Snapshot, Store
from fireswarm.contracts.skills.skill import Fact
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import EPOCH, parse_readable
from fireswarm.storage.memory.fact_documents import is_wrong, parse_fact, short_id, value_text
from fireswarm.storage.search.bm25 import TextIndex
from fireswarm.storage.search.words import words

MAX_FACTS = 20_000
"""Maximum number of documents of a session that are held: about 40 MB."""

RELOAD_SECONDS = 600.0
"""Age at which all documents are read again, for edits by hand of the words of a fact."""

COUNT_SECONDS = 15.0
"""Interval of the counts that notice documents added or removed by hand."""

OVERLAP_SECONDS = 10.0
"""Time that is read again: clocks differ, and a write is a little older than its commit."""

MIN_WRONG_WORDS = 3
"""Minimum number of words of a wrong value that no other fact may repeat; shorter values can be true of others."""

_WEIGHTS = {"key": 2.0, "keywords": 1.5, "bucket": 1.0, "value": 1.0, "source": 0.3, "evidence": 0.3}
"""Weights of the words of a fact by field."""


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A fact with the state of its document. ``said`` are the words of its value."""

    fact: Fact
    session_hash: str
    wrong: bool
    stored_at: datetime
    changed_at: datetime
    said: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str, str]:
        """The names by which another fact can say that it replaces this one."""
        return self.fact.fact_id, short_id(self.fact.fact_id), f"{self.fact.bucket}/{self.fact.key}"

    @property
    def age(self) -> tuple[datetime, str]:
        """The time for the choice between documents with the same bucket and key; a mark as wrong does not count."""
        return (self.stored_at if self.wrong else self.changed_at), self.fact.fact_id


@dataclass(slots=True)
class KnownFacts:
    """Facts of one scope, the documents with *name* in the field *scope*: a session or a project.

    ``hidden`` are the ids of facts that are not recalled, None until they are needed.
    """

    scope: str
    name: str
    facts: dict[str, StoredFact] = field(default_factory=dict[str, StoredFact])
    index: TextIndex = field(default_factory=TextIndex)
    read_at: datetime = EPOCH
    counted_at: datetime = EPOCH
    loaded_at: datetime = EPOCH
    unreadable: dict[str, datetime] = field(default_factory=dict[str, datetime])
    reading: anyio.Lock = field(default_factory=anyio.Lock)
    hidden: set[str] | None = None

    async def refresh(self, store: Store, clock: Clock) -> None:
        """Learn what was stored since the last call. Raises StoreError."""
        async with self.reading:
            await self._refresh(store, clock.now())

    async def _refresh(self, store: Store, now: datetime) -> None:
        if now - self.loaded_at >= timedelta(seconds=RELOAD_SECONDS):
            await self._load(store, now)
            return
        since = self.read_at - timedelta(seconds=OVERLAP_SECONDS)
        self._learn(await store.query(queries.new_facts(self.scope, self.name, since, MAX_FACTS)))
        self.read_at = now
        if now - self.counted_at >= timedelta(seconds=COUNT_SECONDS):
            self.counted_at = now
            if await store.count(queries.known_facts(self.scope, self.name, MAX_FACTS)) != min(self.count, MAX_FACTS):
                await self._load(store, now)

    @property
    def count(self) -> int:
        """The number of documents, including unreadable ones."""
        return len(self.facts) + len(self.unreadable)

    def look_at(self, snapshots: Iterable[Snapshot]) -> None:
        """Learn the current state of some documents; a missing one is forgotten."""
        self._learn(snapshots)

    def rank(self, query: str) -> list[tuple[StoredFact, float]]:
        """Return the valid facts that share a word with *query*, best first, with their scores."""
        return [(self.facts[name], score) for name, score in self.index.rank(query, without=self._hidden())]

    def valid(self, names: Iterable[str]) -> list[StoredFact]:
        """Return those of the named facts that are known, and neither wrong nor replaced."""
        hidden = self._hidden()
        return [self.facts[name] for name in names if name in self.facts and name not in hidden]

    def find(self, name: str) -> StoredFact | None:
        """Return the fact with this id, short id or ``bucket/key``; None if there is none, or several."""
        matches = [item for item in self.facts.values() if name in item.names]
        return matches[0] if len(matches) == 1 else None

    def find_wrong(self, text: str) -> StoredFact | None:
        """Return a fact with the words of *text* that a person marked as wrong, or None."""
        said = tuple(words(text))
        return next((item for item in self.facts.values() if item.wrong and said and item.said == said), None)

    async def _load(self, store: Store, now: datetime) -> None:
        """Read all documents; those that are gone are forgotten."""
        snapshots = await store.query(queries.known_facts(self.scope, self.name, MAX_FACTS))
        current = {snapshot.id for snapshot in snapshots}
        for gone in [name for name in self.facts if name not in current]:
            self._forget(gone)
        self.unreadable = {name: at for name, at in self.unreadable.items() if name in current}
        self._learn(snapshots)
        self.loaded_at = self.counted_at = self.read_at = now

    def _learn(self, snapshots: Iterable[Snapshot]) -> None:
        news = [item for item in snapshots if not self._is_known(item)]
        self.hidden = None if news else self.hidden
        for snapshot in news:
            self._forget(snapshot.id)
        present = [snapshot for snapshot in news if self._belongs(snapshot.data)]
        for stored in parse_readable(present, _parse):
            self.facts[stored.fact.fact_id] = stored
            self.index.add(stored.fact.fact_id, _parts(stored.fact))
        self.unreadable |= {item.id: _changed_at(item) for item in present if item.id not in self.facts}

    def _is_known(self, snapshot: Snapshot) -> bool:
        """Return True for a state that is already known, or older: reads of parallel recalls end in any order."""
        stored = self.facts.get(snapshot.id)
        known = self.unreadable.get(snapshot.id) if stored is None else stored.changed_at
        return snapshot.data is not None and known is not None and known >= _changed_at(snapshot)

    def _belongs(self, data: Mapping[str, Any] | None) -> bool:
        return data is not None and data.get(self.scope) == self.name

    def _forget(self, name: str) -> None:
        self.hidden = None
        if self.facts.pop(name, None) is not None:
            self.index.remove(name)
        self.unreadable.pop(name, None)

    def _hidden(self) -> set[str]:
        if self.hidden is None:
            self.hidden = self._find_hidden()
        return self.hidden

    def _find_hidden(self) -> set[str]:
        """Return the ids of facts that are wrong, replaced, or repeat what a person marked as wrong."""
        wrong = {name for name, item in self.facts.items() if item.wrong}
        newest: dict[tuple[str, str, str], StoredFact] = {}
        for item in self.facts.values():
            place = (item.session_hash, item.fact.bucket, item.fact.key)
            if place not in newest or newest[place].age < item.age:
                newest[place] = item
        latest = {item.fact.fact_id for item in newest.values()}
        replaced = {
            item.fact.replaces: name for name, item in self.facts.items() if item.fact.replaces and name not in wrong
        }
        texts = {said for name in wrong if len(said := self.facts[name].said) >= MIN_WRONG_WORDS}
        return {
            name
            for name, item in self.facts.items()
            if name in wrong
            or name not in latest
            or any(replaced.get(other, name) != name for other in item.names)
            or item.said in texts
        }


def _parse(snapshot: Snapshot) -> StoredFact:
    data = snapshot.data or {}
    created = data.get("created_at")
    stored_at = created if isinstance(created, datetime) else snapshot.create_time or EPOCH
    try:
        fact = parse_fact(snapshot)
        said = tuple(words(value_text(fact.value)))
    except (RecursionError, ValueError) as error:
        raise InvalidInput(f"{snapshot.path} is not a fact: {error}") from error
    session = str(data.get("session_hash") or "")
    return StoredFact(fact, session, is_wrong(data), stored_at, _changed_at(snapshot), said)


def _changed_at(snapshot: Snapshot) -> datetime:
    """Return the time of a document's last change, in microseconds as Firestore stores it."""
    version = snapshot.update_time
    if version is None:
        return EPOCH
    return EPOCH + timedelta(seconds=version.seconds, microseconds=version.nanos // 1_000)


def _parts(fact: Fact) -> list[tuple[str, float]]:
    """Return the texts of a fact with their weights, for the index."""
    texts = {
        "key": fact.key,
        "keywords": " ".join(fact.keywords),
        "bucket": fact.bucket,
        "value": value_text(fact.value),
        "source": fact.source,
        "evidence": " ".join(fact.evidence),
    }
    return [(text, _WEIGHTS[name]) for name, text in texts.items() if text]
