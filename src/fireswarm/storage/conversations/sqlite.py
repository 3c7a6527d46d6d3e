"""Conversations in files: ``artifacts/{context_id}/.state.db``, one SQLite file each. One machine, no server.

A turn is one transaction that takes the file's write lock first, so that concurrent writers see each other's changes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio.to_thread

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.ports import Clock
from fireswarm.contracts.skills.context import (
    Conversation,
    ConversationChange,
    ConversationState,
    KeptFact,
    check_context_id,
)
from fireswarm.contracts.skills.conversation import LoggedEvent
from fireswarm.errors import StoreError, StoreUnavailable
from fireswarm.storage.conversations.change import Advanced, advance, duplicate, is_duplicate, restore
from fireswarm.storage.conversations.cleaning import Cleaner

STATE_FILE = ".state.db"
WAIT_SECONDS = 10.0
"""Wait for another writer of the same conversation, which needs a few milliseconds."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS context_state (context_id TEXT PRIMARY KEY, version INTEGER, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS conversation_events (sequence INTEGER PRIMARY KEY, event TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pocket_facts (bucket TEXT, key TEXT, fact TEXT NOT NULL, PRIMARY KEY (bucket, key));
CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, message_id TEXT UNIQUE, response TEXT);
"""


@dataclass(frozen=True, slots=True)
class SqliteContexts:
    """Conversations below *folder*."""

    folder: Path
    clock: Clock
    clean: Cleaner = field(default_factory=Cleaner)

    async def load(self, context_id: str) -> Conversation | None:
        """Read a conversation, or None."""
        path = self._path(context_id)
        return await _in_thread(lambda: self._load(path))

    async def apply(self, change: ConversationChange) -> Conversation:
        """Apply a change in one transaction."""
        path = self._path(change.context_id)
        return await _in_thread(lambda: self._apply(path, change))

    async def response(self, context_id: str, message_id: str) -> JsonObject | None:
        """Return the answer to a message."""
        path = self._path(context_id)
        return await _in_thread(lambda: _response(path, message_id))

    async def prune(self, before: datetime) -> int:
        """Remove the files of conversations that expired before *before*."""
        return await _in_thread(lambda: self._prune(before))

    async def close(self) -> None:
        """Do nothing: no resources are held."""

    def _path(self, context_id: str) -> Path:
        return self.folder / check_context_id(context_id) / STATE_FILE

    def _load(self, path: Path) -> Conversation | None:
        if not path.exists():
            return None
        with _connect(path) as database:
            return _read(database, self.clock.now())

    def _apply(self, path: Path, change: ConversationChange) -> Conversation:
        """Apply a change in one transaction. Creates the file on the first change."""
        if not path.exists():
            advance(None, change, self.clock.now(), self.clean)  # a rejected change must not leave a file
            path.parent.mkdir(parents=True, exist_ok=True)
        with _connect(path) as database:
            database.executescript(_SCHEMA)
            database.execute("BEGIN IMMEDIATE")
            data = _read(database, self.clock.now())
            if is_duplicate(data, change):
                raise duplicate(change, _answer(database, str(change.message_id)))
            advanced = advance(data, change, self.clock.now(), self.clean)
            _write(database, change, advanced)
            database.execute("COMMIT")
            return advanced.context

    def _prune(self, before: datetime) -> int:
        """Delete the files of expired conversations and return their number."""
        removed = 0
        for path in sorted(self.folder.glob(f"*/{STATE_FILE}")):
            conversation = self._load(path)
            if conversation is None or conversation.state.expires_at is None or conversation.state.expires_at > before:
                continue
            path.unlink(missing_ok=True)
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
            removed += 1
        return removed


async def _in_thread[T](call: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(call)


@contextmanager
def _connect(path: Path) -> Generator[sqlite3.Connection]:
    """Open the file for the duration of the block; uncommitted changes are rolled back."""
    try:
        with closing(sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = FULL")
            yield database
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be used as a conversation database: {error}") from error


def _read(database: sqlite3.Connection, now: datetime) -> Conversation | None:
    """Read the conversation, or None for an empty file."""
    try:
        row = database.execute("SELECT state FROM context_state").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None  # left by a writer that died before its first write
        raise
    if row is None:
        return None
    facts = database.execute("SELECT fact FROM pocket_facts").fetchall()
    events = database.execute("SELECT event FROM conversation_events ORDER BY sequence").fetchall()
    messages = database.execute("SELECT message_id FROM messages ORDER BY number").fetchall()
    return restore(
        ConversationState.model_validate_json(row[0]),
        [KeptFact.model_validate_json(text) for (text,) in facts],
        [LoggedEvent.model_validate_json(text) for (text,) in events],
        [str(name) for (name,) in messages],
        now,
    )


def _write(database: sqlite3.Connection, change: ConversationChange, advanced: Advanced) -> None:
    """Write the state, and write or delete facts, events and messages."""
    state = advanced.context.state
    row = (state.context_id, state.version, state.model_dump_json())
    database.execute("INSERT OR REPLACE INTO context_state VALUES (?, ?, ?)", row)
    facts = [(fact.bucket, fact.key, fact.model_dump_json()) for fact in advanced.put_facts]
    database.executemany("DELETE FROM pocket_facts WHERE bucket = ? AND key = ?", advanced.drop_facts)
    database.executemany("INSERT OR REPLACE INTO pocket_facts VALUES (?, ?, ?)", facts)
    kept = {event.sequence for event in advanced.context.events}
    new = [(item.sequence, item.model_dump_json()) for item in advanced.new_events if item.sequence in kept]
    gone = [(item.sequence,) for item in advanced.dropped_events]
    database.executemany("INSERT INTO conversation_events VALUES (?, ?)", new)
    database.executemany("DELETE FROM conversation_events WHERE sequence = ?", gone)
    if change.message_id is not None:
        answer = None if advanced.response is None else json.dumps(advanced.response)
        database.execute("INSERT INTO messages (message_id, response) VALUES (?, ?)", (change.message_id, answer))
    database.executemany("DELETE FROM messages WHERE message_id = ?", [(name,) for name in advanced.drop_messages])


def _response(path: Path, message_id: str) -> JsonObject | None:
    if not path.exists():
        return None
    with _connect(path) as database:
        return _answer(database, message_id)


def _answer(database: sqlite3.Connection, message_id: str) -> JsonObject | None:
    row: Any = database.execute("SELECT response FROM messages WHERE message_id = ?", (message_id,)).fetchone()
    return None if row is None or row[0] is None else json.loads(row[0])
