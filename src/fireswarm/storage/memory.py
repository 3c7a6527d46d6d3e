"""Facts and session summaries in ``mcp_memory``, separated by session."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import SERVER_TIME, Clock, Delete, Merge, Snapshot, Store, Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import MEMORY
from fireswarm.storage.documents.read import parse_readable

MAX_KEYWORDS = 30
"""Firestore allows 30 values in an array-contains-any filter."""

MAX_SUMMARY_CHARS = 10_000
_WORD = re.compile(r"[a-z][a-z0-9_.-]{2,}")
_COMMON = frozenset({"and", "are", "for", "from", "into", "our", "that", "the", "this", "was", "what", "which", "with"})


def keywords_of(texts: Iterable[str], limit: int = MAX_KEYWORDS) -> list[str]:
    """Return the words of *texts* that are useful for recall, most frequent first."""
    counted = Counter(word.strip(".-_") for text in texts for word in _WORD.findall(text.lower()))
    words = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in words if word not in _COMMON and len(word) > 2][:limit]


def fact_path(session_hash: str, bucket: str, key: str) -> str:
    """Path of a fact: one document per session, bucket and key, so a new value replaces the old one."""
    digest = hashlib.sha256(f"{session_hash}\n{bucket}\n{key}".encode()).hexdigest()
    return f"{MEMORY}/fact-{digest[:40]}"


@dataclass(frozen=True, slots=True)
class Memory:
    """Facts and summaries in a store."""

    store: Store
    clock: Clock

    def remember(self, task: Task, facts: Sequence[Fact]) -> list[Write]:
        """Return the writes that store *facts*, for the commit that settles their task."""
        return self.learn(task.session_hash, task.task_id, facts)

    def learn(self, session_hash: str, task_id: str, facts: Sequence[Fact]) -> list[Write]:
        """Return the writes that store *facts* of a session, learned by a task."""
        writes: list[Write] = []
        for fact in facts:
            words = [word.lower() for word in fact.keywords] or keywords_of([fact.key, fact.bucket])
            fields = plain(fact) | {
                "type": "fact",
                "session_hash": session_hash,
                "keywords": words[:MAX_KEYWORDS],
                "source": fact.source or f"task {task_id}",
                "source_task_id": task_id,
                "learned_at": fact.learned_at or self.clock.now(),
                "created_at": SERVER_TIME,
            }
            writes.append(Merge(fact_path(session_hash, fact.bucket, fact.key), fields))
        return writes

    def summarise(self, task: Task, artifact: Artifact) -> list[Write]:
        """Return the write that stores a session summary, one document per task."""
        text = artifact.value if isinstance(artifact.value, str) else artifact.summary
        fields = {
            "type": "session_summary",
            "session_hash": task.session_hash,
            "bucket": "summaries",
            "key": task.task_id,
            "text": text[:MAX_SUMMARY_CHARS],
            "source": f"task {task.task_id}",
            "created_at": SERVER_TIME,
        }
        return [Merge(f"{MEMORY}/summary-{task.task_id}", fields)]

    async def recall(self, session_hash: str, keywords: Sequence[str], limit: int = 200) -> list[Fact]:
        """Return facts of this session with at least one of *keywords* (only the first 30 are used)."""
        if not keywords:
            return []
        return parse_readable(await self.store.query(queries.recall(session_hash, keywords, limit)), parse_fact)

    async def bucket(self, session_hash: str, bucket: str, limit: int = 200) -> list[Fact]:
        """Return the facts of one bucket of a session, newest first."""
        snapshots = await self.store.query(
            queries.newest(MEMORY, "created_at", limit, session_hash=session_hash, bucket=bucket)
        )
        return parse_readable(snapshots, parse_fact)

    async def forget(self, session_hash: str, bucket: str, key: str) -> bool:
        """Delete a fact; returns False if it did not exist."""
        path = fact_path(session_hash, bucket, key)
        if (await self.store.get(path)).data is None:
            return False
        await self.store.commit([Delete(path)])
        return True


def parse_fact(snapshot: Snapshot) -> Fact:
    """Parse a fact's document. Raises InvalidInput with the reason."""
    data = snapshot.data or {}
    fields = {name: data.get(name) for name in Fact.model_fields if data.get(name) is not None}
    fields.setdefault("value", None)
    try:
        return Fact.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not a fact: {explain_validation(error)}") from error
