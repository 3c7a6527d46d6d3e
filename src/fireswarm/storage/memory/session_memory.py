"""Facts and session summaries in ``mcp_memory``, separated by session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Clock, Delete, Merge, Snapshot, Store, Update, Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.find import find_by_id
from fireswarm.storage.documents.paths import MEMORY, VECTORS
from fireswarm.storage.documents.read import EPOCH, parse_readable
from fireswarm.storage.memory.fact_documents import (
    FACT,
    MAX_KEYWORDS,
    SUMMARIES,
    SUMMARY,
    fact_path,
    find_keywords,
    id_beginnings,
    is_wrong,
    parse_fact,
    version_of,
    version_write,
)
from fireswarm.storage.memory.known_facts import KnownFacts, StoredFact
from fireswarm.storage.memory.vectors import FactVectors

MAX_SUMMARY_CHARS = 10_000

MAX_RECALLED = 200
"""Maximum number of facts of one recall; each costs a read, which returns its current state."""

MEANING_WEIGHT = 0.3
"""Share of the meaning in the score of a fact, if vectors are searched; the rest is BM25, as a share of the best.

Chosen on the development half of ``benchmarks/recall_bench.py``; 0.2 to 0.4 differ by less than a point there.
"""

CORRECTED_BY = "a person, who corrected it"
"""Source of a value that a person gave in the place of another one."""

MAX_SCOPES = 50
"""Maximum number of sessions whose facts are held in memory; the one used least recently is dropped first."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Facts and summaries in a store. With *project*, the facts are shared with other sessions of that project."""

    store: Store
    clock: Clock
    project: str = ""
    vectors: FactVectors | None = None
    known: OrderedDict[tuple[str, str], KnownFacts] = field(default_factory=OrderedDict[tuple[str, str], KnownFacts])

    async def remember(self, task: Task, facts: Sequence[Fact]) -> list[Write]:
        """Return the writes that store *facts*, for the commit that settles their task."""
        return await self.learn(task.session_hash, task.task_id, facts)

    async def learn(self, session_hash: str, task_id: str, facts: Sequence[Fact]) -> list[Write]:
        """Return the writes that store *facts* of a session, learned by a task.

        A new value replaces the one with the same bucket and key; both are kept as versions. A mark as wrong stays
        with the value that it was made for.
        """
        paths = [fact_path(session_hash, fact.bucket, fact.key) for fact in facts]
        current = {item.path: item for item in await self.store.get_many(list(dict.fromkeys(paths)))}
        return [
            write
            for path, fact in zip(paths, facts, strict=True)
            for write in self._replace(current[path], self._fields(session_hash, task_id, fact))
        ]

    def summarise(self, task: Task, artifact: Artifact) -> list[Write]:
        """Return the write that stores a session summary, one document per task."""
        text = artifact.value if isinstance(artifact.value, str) else artifact.summary
        fields = {
            "type": SUMMARY,
            "session_hash": task.session_hash,
            "bucket": SUMMARIES,
            "key": task.task_id,
            "text": text[:MAX_SUMMARY_CHARS],
            "source": f"task {task.task_id}",
            "created_at": SERVER_TIME,
        }
        return [Merge(f"{MEMORY}/summary-{task.task_id}", fields | self._shared)]

    async def recall(
        self, session_hash: str, query: str, limit: int = MAX_RECALLED, *, share_of_best: float = 0.0
    ) -> list[Fact]:
        """Return the valid facts and summaries that fit *query*, best first, in their current state.

        They share a word with it or, if the memory has vectors, mean nearly the same. Facts with less than
        *share_of_best* of the best score are left out.
        """
        if not query.strip() or limit <= 0:
            return []
        scopes = await self._refresh_scopes(session_hash)
        near = await self.vectors.nearness(session_hash, scopes, query) if self.vectors is not None else {}
        shown = [item.fact.fact_id for item, _ in _rank(scopes, query, near)[:limit]]
        current = await self.store.get_many([f"{MEMORY}/{name}" for name in shown])
        for known in scopes:  # a person may have edited, marked or removed one
            known.look_at(current)
        ranked = [(item, score) for item, score in _rank(scopes, query, near) if item.fact.fact_id in shown]
        least = share_of_best * max((score for _, score in ranked), default=0.0)
        return [item.fact for item, score in ranked if score >= least]

    async def find_wrong(self, session_hash: str, text: str) -> Fact | None:
        """Return a fact with the words of *text* that a person marked as wrong, or None."""
        scopes = await self._refresh_scopes(session_hash)
        return next((item.fact for known in scopes if (item := known.find_wrong(text)) is not None), None)

    async def find_known(self, session_hash: str, name: str) -> Fact | None:
        """Return the fact of a session with this id, short id or ``bucket/key``, or None."""
        scopes = await self._refresh_scopes(session_hash)
        return next((item.fact for known in scopes if (item := known.find(name)) is not None), None)

    async def bucket(self, session_hash: str, bucket: str, limit: int = 200) -> list[Fact]:
        """Return the facts of one bucket of a session, newest first."""
        snapshots = await self.store.query(
            queries.newest(MEMORY, "created_at", limit, session_hash=session_hash, bucket=bucket)
        )
        return parse_readable((item for item in snapshots if not is_wrong(item.data or {})), parse_fact)

    async def forget(self, fact_id: str) -> None:
        """Delete a fact or a summary with its versions. Raises NotFound, InvalidInput."""
        path = (await self.find(fact_id)).path
        versions = await self.store.query(queries.fact_versions(path))
        vector = f"{VECTORS}/{path.removeprefix(f'{MEMORY}/')}"
        await self._change(path, [Delete(path), Delete(vector), *(Delete(version.path) for version in versions)])

    async def find(self, fact_id: str) -> Snapshot:
        """Return the document of a fact or summary by its id or the beginning of it. Raises NotFound, InvalidInput."""
        if not is_document_id(fact_id):
            raise InvalidInput("give the id of a fact, or the beginning of one: `swarm memory` lists them")
        unknown = f"there is no fact {fact_id}: `swarm memory` lists the facts with their ids"
        return _require_fact(await find_by_id(self.store, MEMORY, id_beginnings(fact_id), unknown))

    async def mark(self, fact_id: str, *, wrong: bool, reason: str = "") -> Fact:
        """Mark a fact as wrong, so that it is not told again, or remove the mark. Raises NotFound, InvalidInput."""
        snapshot = await self.find(fact_id)
        fields: dict[str, Any] = {"wrong": DELETE_FIELD, "wrong_reason": DELETE_FIELD}
        if wrong:
            fields = {"wrong": True, "wrong_reason": reason or DELETE_FIELD}
        return parse_fact(await self._change(snapshot.path, [Update(snapshot.path, fields)]))

    async def correct(self, fact_id: str, value: Any) -> Fact:
        """Replace the value of a fact by that of a person, and keep the earlier one.

        Raises NotFound, InvalidInput, and Conflict if the fact has changed meanwhile.
        """
        snapshot = await self.find(fact_id)
        data = snapshot.data or {}
        if data.get("type") != FACT:
            raise InvalidInput(f"{snapshot.id} is the summary of a task: mark it as wrong, a summary is not corrected")
        changed = {"value": value, "source": CORRECTED_BY, "evidence": (), "confidence": 1.0}
        fact = parse_fact(snapshot).model_copy(update={**changed, "learned_at": self.clock.now()})
        fields = self._fields(str(data.get("session_hash") or ""), "", fact)  # no task wrote this value
        fields.pop("project", None)  # it stays in the project of whoever learned it
        current, *versions = self._replace(snapshot, fields)
        if not isinstance(current, Merge):
            raise InvalidInput(f"{snapshot.id} was learned in the future: correct its learned_at in the store first")
        update = Update(snapshot.path, current.data, snapshot.update_time)  # one that was forgotten stays so
        return parse_fact(await self._change(snapshot.path, [update, *versions]))

    async def _change(self, path: str, writes: Sequence[Write]) -> Snapshot:
        """Commit the changes of a person to a fact, and return its document as it is now, also to the index."""
        await self.store.commit(writes)
        current = await self.store.get(path)
        for known in self.known.values():
            known.look_at([current])
        return current

    async def history(self, fact_id: str) -> list[Fact]:
        """Return the values that a fact has had, newest first; the first one is the current value."""
        current, *earlier = await self.find_values(fact_id)
        return [parse_fact(current), *parse_readable(earlier, parse_fact)]

    async def find_values(self, fact_id: str) -> list[Snapshot]:
        """Return the documents of the values that a fact has had, newest first; the first one is the fact's own.

        Raises NotFound, InvalidInput.
        """
        snapshot = await self.find(fact_id)
        fact, data = parse_fact(snapshot), snapshot.data or {}
        versions = await self.store.query(queries.fact_versions(snapshot.path))
        named = {"bucket": fact.bucket, "key": fact.key}
        earlier = [
            Snapshot(snapshot.path, {**(item.data or {}), **named}, item.update_time, item.create_time)
            for item in sorted(versions, key=_learned_at, reverse=True)
            if item.id != version_of(data)
        ]
        return [snapshot, *earlier]

    @property
    def _shared(self) -> dict[str, Any]:
        return {"project": self.project} if self.project else {}

    def _fields(self, session_hash: str, task_id: str, fact: Fact) -> dict[str, Any]:
        """Return the fields of a fact's document."""
        words = [word.lower() for word in fact.keywords] or find_keywords([fact.key, fact.bucket])
        fields = plain(fact.model_copy(update={"fact_id": ""})) | {
            "type": FACT,
            "session_hash": session_hash,
            "keywords": words[:MAX_KEYWORDS],
            "source": fact.source or f"task {task_id}",
            "source_task_id": task_id,
            "learned_at": fact.learned_at or self.clock.now(),
            "created_at": SERVER_TIME,
        }
        return dict(self.store.as_stored(fields | self._shared))

    def _replace(self, before: Snapshot, fields: dict[str, Any]) -> list[Write]:
        """Return the writes that put *fields* in the place of a document, and keep both as versions."""
        versions: list[Write] = [version_write(before.path, fields)]
        old = before.data
        if old is not None:
            if old.get("version") != version_of(old):  # written or edited by hand
                versions.append(version_write(before.path, old))
            if _time(fields) < min(_time(old), self.clock.now()):
                return versions  # learned before the value that is there
            if is_wrong(old) and old.get("value") != fields["value"]:
                fields = fields | {"wrong": DELETE_FIELD, "wrong_reason": DELETE_FIELD}
            stale = [name for name in ("evidence", "replaces") if name in old and name not in fields]
            fields = fields | dict.fromkeys(stale, DELETE_FIELD)
        return [Merge(before.path, fields | {"version": version_of(fields)}), *versions]

    def _scopes(self, session_hash: str) -> list[KnownFacts]:
        names = [("session_hash", session_hash), *([("project", self.project)] if self.project else [])]
        for name in names:
            if name not in self.known:
                self.known[name] = KnownFacts(*name)
            self.known.move_to_end(name)
        while len(self.known) > MAX_SCOPES:
            self.known.popitem(last=False)
        return [self.known[name] for name in names]

    async def _refresh_scopes(self, session_hash: str) -> list[KnownFacts]:
        scopes = self._scopes(session_hash)
        for known in scopes:
            await known.refresh(self.store, self.clock)
        return scopes


def _rank(scopes: Sequence[KnownFacts], query: str, near: Mapping[str, float]) -> list[tuple[StoredFact, float]]:
    """Return the facts of all scopes by their scores, each once.

    With *near*, the similarities by meaning from 0 to 1, both kinds of scores are added as shares of the best one.
    """
    best: dict[str, tuple[StoredFact, float]] = {}
    for known in scopes:
        ranked = known.rank(query)
        if near:
            words = {item.fact.fact_id: score for item, score in ranked}
            most = max(words.values(), default=1.0)
            ranked = [
                (item, (1 - MEANING_WEIGHT) * words.get(name, 0.0) / most + MEANING_WEIGHT * near.get(name, 0.0))
                for item in known.valid(dict.fromkeys([*words, *near]))
                if (name := item.fact.fact_id)
            ]
        for item, score in ranked:
            name = item.fact.fact_id
            if name not in best or best[name][1] < score:
                best[name] = (item, score)
    return sorted(best.values(), key=lambda pair: (-pair[1], pair[0].fact.fact_id))


def _require_fact(snapshot: Snapshot) -> Snapshot:
    """Return the document if it is a fact or a summary. Raises InvalidInput."""
    kind = (snapshot.data or {}).get("type")
    if kind not in (FACT, SUMMARY):
        raise InvalidInput(f"{snapshot.path} is not a fact but {kind or 'a document without a type'}")
    return snapshot


def _time(data: Any) -> datetime:
    learned = data.get("learned_at")
    return learned if isinstance(learned, datetime) else EPOCH


def _learned_at(snapshot: Snapshot) -> tuple[datetime, datetime, str]:
    return _time(snapshot.data or {}), snapshot.create_time or EPOCH, snapshot.id
