"""research: a scratchpad of notes with sources, stored in the session's memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from fireswarm.capabilities.capability import Capability, CapabilityContext, tool
from fireswarm.capabilities.session_files.storage import FolderShelf
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.redaction import environment_redactor
from fireswarm.storage.memory import MAX_KEYWORDS, Memory, fact_path, find_keywords
from fireswarm.storage.search.bm25 import rank_texts
from fireswarm.storage.search.words import words

BUCKET = "research"
"""Bucket of the notes among the session's facts, found by recall and passed to other tasks."""

MAX_NOTE_CHARS = 4_000
MAX_SOURCE_CHARS = 2_000

RESEARCH_PROMPT = """# Notes

You have access to a research scratchpad. Use it to organize your thoughts and findings: `add_note` for each finding, in
your own words, with its `source` (the URL, the file, or `thought` for a conclusion of yours). `search_notes` before you
look something up again. Conclude from notes, and name their sources."""


class ResearchConfig(BaseModel):
    """Limits of a session's notes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_notes: int = Field(
        default=500, ge=1, le=5_000, description="maximum notes per session; a search reads all of them"
    )


class Pad(Protocol):
    """Storage of notes by key."""

    async def all(self, limit: int) -> list[Fact]:
        """Return the notes, newest first."""
        ...

    async def put(self, note: Fact) -> None:
        """Store a note; an existing note with the same key is replaced."""
        ...

    async def drop(self, key: str) -> bool:
        """Remove a note; returns False if it does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryPad:
    """Notes as facts of the session, found by recall like other facts."""

    memory: Memory
    session_hash: str
    task_id: str

    async def all(self, limit: int) -> list[Fact]:
        """Return the notes, newest first; billed one read per note."""
        return await self.memory.bucket(self.session_hash, BUCKET, limit)

    async def put(self, note: Fact) -> None:
        """Store a note; billed one write."""
        await self.memory.store.commit(await self.memory.learn(self.session_hash, self.task_id, [note]))

    async def drop(self, key: str) -> bool:
        """Remove a note."""
        try:
            await self.memory.forget(fact_path(self.session_hash, BUCKET, key).rpartition("/")[2])
        except NotFound:
            return False
        return True


@dataclass(frozen=True, slots=True)
class FolderPad:
    """Notes as files, for an agent without a store."""

    shelf: FolderShelf

    async def all(self, limit: int) -> list[Fact]:
        """Return the notes, newest first."""
        kept = await self.shelf.between("/", "0", limit)
        notes = [Fact.model_validate_json(each.content) for each in kept]
        return sorted(notes, key=lambda note: note.learned_at or datetime.min, reverse=True)

    async def put(self, note: Fact) -> None:
        """Store a note."""
        path = f"/{note.key}"
        [before] = await self.shelf.get_many([path])
        await self.shelf.put(path, note.model_dump_json(), before)

    async def drop(self, key: str) -> bool:
        """Remove a note."""
        [before] = await self.shelf.get_many([f"/{key}"])
        await self.shelf.remove([f"/{key}"])
        return before is not None


@dataclass(frozen=True, slots=True)
class Research:
    """The tools on one session's notes."""

    pad: Pad
    config: ResearchConfig
    clock: Clock
    task_id: str

    async def add_note(self, text: str, source: str, tags: list[str] | None = None) -> dict[str, Any]:
        """Stores a finding with its source: a URL, a file, or thought. The same note is stored only once."""
        redact = environment_redactor()
        text, source = redact.text(text.strip()), redact.text(source.strip())
        if not text or not source:
            raise InvalidInput("a note needs a text and a source: a URL, a file, or `thought`")
        if len(text) > MAX_NOTE_CHARS or len(source) > MAX_SOURCE_CHARS:
            raise InvalidInput(f"a note has at most {MAX_NOTE_CHARS:,} characters, its source {MAX_SOURCE_CHARS:,}")
        named = f"{source} by {self.task_id}" if source == "thought" and self.task_id else source
        key = hashlib.sha256(json.dumps([text, source]).encode()).hexdigest()[:12]
        notes = await self.pad.all(self.config.max_notes + 1)
        if len(notes) >= self.config.max_notes and key not in {note.key for note in notes}:
            raise InvalidInput(
                f"note limit reached ({len(notes)}): remove some with remove_note, "
                "or raise max_notes in the capability's configuration"
            )
        tagged = [redact.text(tag.strip().lower()) for tag in tags or [] if tag.strip()]
        keywords = tuple(dict.fromkeys([*tagged, *find_keywords([text, source])]))[:MAX_KEYWORDS]
        note = Fact(bucket=BUCKET, key=key, value=text, keywords=keywords, source=named, learned_at=self.clock.now())
        await self.pad.put(note)
        return {"id": key, "source": named, "notes": len({*(each.key for each in notes), key})}

    async def list_notes(self, source: str = "", limit: int = 50) -> dict[str, Any]:
        """Lists notes, newest first. source selects the notes whose source contains that text."""
        notes = await self.pad.all(self.config.max_notes)
        matches = [note for note in notes if source.lower() in note.source.lower()]
        return _note_list(matches, limit)

    async def search_notes(self, query: str, limit: int = 20) -> dict[str, Any]:
        """Finds notes by words in any language; the notes that fit best come first."""
        if not words(query):
            raise InvalidInput("search_notes needs search words")
        notes = await self.pad.all(self.config.max_notes)
        scores = rank_texts(query, [f"{note.value} {note.source} {' '.join(note.keywords)}" for note in notes])
        found = sorted((pair for pair in zip(scores, notes, strict=True) if pair[0]), key=lambda pair: -pair[0])
        return _note_list([note for _, note in found], limit)

    async def remove_note(self, id: str) -> dict[str, Any]:
        """Removes a note that is wrong or no longer useful."""
        return {"id": id, "removed": await self.pad.drop(id)}


def _note_list(notes: Sequence[Fact], limit: int) -> dict[str, Any]:
    listed = [
        {"id": note.key, "text": note.value, "source": note.source, "noted_at": note.learned_at}
        for note in notes[: max(0, limit)]
    ]
    return {"notes": listed, "count": len(notes)}


def _tools(config: ResearchConfig, context: CapabilityContext) -> Sequence[Tool]:
    """Return the tools, on the store's memory or on a folder."""
    pad: Pad
    if context.store is not None:
        pad = MemoryPad(Memory(context.store, context.clock), context.session, context.task_id)
    else:
        pad = FolderPad(FolderShelf(context.workdir, f"notes of {context.session}"))
    on = Research(pad, config, context.clock, context.task_id)
    return [
        tool(writes=True)(on.add_note),
        tool(on.list_notes),
        tool(on.search_notes),
        tool(writes=True, idempotent=True)(on.remove_note),
    ]


RESEARCH = Capability(
    "research",
    "Research",
    "A scratchpad of notes with sources, stored in the session's memory; combine with web_fetch.",
    tools=_tools,
    config=ResearchConfig,
    system_prompt=RESEARCH_PROMPT,
    icon="search",
    category="AI",
)
