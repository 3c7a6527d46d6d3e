"""Conversations in PostgreSQL, for workers on many machines. Needs ``swarm state migrate``.

A turn is one transaction that locks the conversation's row first. Each process has one connection, used exclusively.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
import psycopg
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

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
from fireswarm.errors import ConfigError, StoreRejected, StoreUnavailable, VersionConflict
from fireswarm.storage.conversations.change import Advanced, advance, duplicate, is_duplicate, restore
from fireswarm.storage.conversations.cleaning import Cleaner

CONNECT_SECONDS = 10
MESSAGE = "answered_message"
"""Event type of the rows that store a message's answer; they are not part of the log."""

_MIGRATIONS: tuple[str, ...] = (
    """
CREATE TABLE IF NOT EXISTS agent_context_state (
    context_id VARCHAR(255) PRIMARY KEY, current_turn INTEGER DEFAULT 1, task_state VARCHAR(50) DEFAULT 'pending',
    summary TEXT, version INTEGER DEFAULT 1, resume_token VARCHAR(64), agent_state_detail VARCHAR(50),
    input_request_payload JSONB, created_at TIMESTAMPTZ DEFAULT NOW(), updated_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE IF NOT EXISTS agent_conversation_events (
    id SERIAL PRIMARY KEY,
    context_id VARCHAR(255) NOT NULL REFERENCES agent_context_state(context_id) ON DELETE CASCADE,
    event_type VARCHAR(100) NOT NULL, payload JSONB NOT NULL, timestamp TIMESTAMPTZ NOT NULL,
    turn_number INTEGER NOT NULL, agent_id VARCHAR(255), message_id VARCHAR(255), UNIQUE (context_id, message_id)
);
CREATE INDEX IF NOT EXISTS idx_agent_events_context ON agent_conversation_events (context_id, timestamp DESC);
CREATE INDEX IF NOT EXISTS idx_agent_events_message ON agent_conversation_events (context_id, message_id)
    WHERE message_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS agent_pocket_facts (
    context_id VARCHAR(255) NOT NULL REFERENCES agent_context_state(context_id) ON DELETE CASCADE,
    bucket VARCHAR(100) NOT NULL, key VARCHAR(255) NOT NULL, value JSONB NOT NULL, timestamp TIMESTAMPTZ NOT NULL,
    ttl_seconds INTEGER, expires_at TIMESTAMPTZ, PRIMARY KEY (context_id, bucket, key)
);
CREATE INDEX IF NOT EXISTS idx_agent_facts_bucket ON agent_pocket_facts (context_id, bucket);
CREATE INDEX IF NOT EXISTS idx_agent_facts_expires ON agent_pocket_facts (expires_at) WHERE expires_at IS NOT NULL;
""",
    """
ALTER TABLE agent_context_state
    ADD COLUMN IF NOT EXISTS session_hash TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS skill TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS summary_task TEXT NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS inputs JSONB,
    ADD COLUMN IF NOT EXISTS holder TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS event_count INTEGER NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS expires_at TIMESTAMPTZ;
ALTER TABLE agent_conversation_events ADD COLUMN IF NOT EXISTS sequence INTEGER NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS idx_agent_context_expires ON agent_context_state (expires_at) WHERE expires_at IS NOT NULL;
""",
    """
ALTER TABLE agent_context_state
    ADD COLUMN IF NOT EXISTS held_message TEXT NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS held_until TIMESTAMPTZ;
""",
)  # fmt: skip
"""Migration steps in order. Other programs may use the tables of the first step; the later steps add our columns."""

_LOCK = 7_203_114
"""Advisory lock of a migration, so that concurrent migrations run each step once."""


@dataclass(slots=True)
class PostgresConversations:
    """Conversations in the database at *url*."""

    url: str
    clock: Clock
    clean: Cleaner = field(default_factory=Cleaner)
    _connection: AsyncConnection[tuple[Any, ...]] | None = None
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def load(self, context_id: str) -> Conversation | None:
        """Read a conversation, or None."""
        async with self._transaction() as database:
            return await self._read(database, check_context_id(context_id))

    async def apply(self, change: ConversationChange) -> Conversation:
        """Apply a change in one transaction."""
        check_context_id(change.context_id)
        async with self._transaction() as database:
            conversation = await self._read(database, change.context_id, " FOR UPDATE")
            if is_duplicate(conversation, change):
                raise duplicate(change, await _answer(database, change.context_id, str(change.message_id)))
            advanced = advance(conversation, change, self.clock.now(), self.clean)
            await _write_state(database, advanced.context.state, new=conversation is None)
            await _write_rest(database, change, advanced)
            return advanced.context

    async def response(self, context_id: str, message_id: str) -> JsonObject | None:
        """Return the answer to a message."""
        async with self._transaction() as database:
            return await _answer(database, context_id, message_id)

    async def prune(self, before: datetime) -> int:
        """Remove conversations that expired before *before*."""
        async with self._transaction() as database:
            gone = await database.execute("DELETE FROM agent_context_state WHERE expires_at <= %s", (before,))
            return gone.rowcount

    async def migrate(self) -> int:
        """Create or extend the tables; returns the number of new steps. Safe to repeat, also concurrently."""
        async with self._transaction() as database:
            await database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            await database.execute("CREATE TABLE IF NOT EXISTS agent_state_migrations (step INTEGER PRIMARY KEY)")
            rows = await (await database.execute("SELECT step FROM agent_state_migrations")).fetchall()
            done = {row[0] for row in rows}
            new = [number for number in range(1, len(_MIGRATIONS) + 1) if number not in done]
            for number in new:
                await database.execute(_MIGRATIONS[number - 1].encode())
                await database.execute("INSERT INTO agent_state_migrations VALUES (%s)", (number,))
            return len(new)

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _read(self, database: AsyncConnection[Any], context_id: str, lock: str = "") -> Conversation | None:
        """Read a conversation, or None; *lock* is appended to the query of its row."""
        columns = ", ".join(_COLUMNS)
        query = f"SELECT {columns} FROM agent_context_state WHERE context_id = %s{lock}"
        row = await (await database.execute(query.encode(), (context_id,))).fetchone()
        if row is None:
            return None
        state = {name: value for name, value in zip(_COLUMNS.values(), row, strict=True) if value is not None}
        facts = await _rows(database, "agent_pocket_facts", _FACT_COLUMNS, context_id, "")
        events = await _rows(database, "agent_conversation_events", _EVENT_COLUMNS, context_id, "ORDER BY id")
        return restore(
            ConversationState.model_validate(state),
            [KeptFact.model_validate(fact) for fact in facts],
            [LoggedEvent.model_validate(event) for event in events if event["message_id"] is None],
            [str(event["message_id"]) for event in events if event["message_id"] is not None],
            self.clock.now(),
        )

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[AsyncConnection[tuple[Any, ...]]]:
        """Run one transaction on the connection, opening it if necessary, and translate the driver's errors."""
        async with self._turn:
            try:
                database = self._connection
                if database is None or database.closed:
                    database = await psycopg.AsyncConnection.connect(
                        self.url, connect_timeout=CONNECT_SECONDS, autocommit=True
                    )
                    self._connection = database
                async with database.transaction():
                    yield database
            except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
                raise ConfigError("the database lacks tables of conversations: run `swarm state migrate`") from error
            except psycopg.errors.UniqueViolation as error:
                raise VersionConflict(f"the conversation was created by another process: {error}") from error
            except psycopg.OperationalError as error:
                raise StoreUnavailable(f"the conversation database is unavailable: {_brief(error)}") from error
            except psycopg.Error as error:
                raise StoreRejected(f"the database rejected the conversation: {_brief(error)}") from error


def open_conversations(url: str | None, clock: Clock, clean: Cleaner) -> PostgresConversations:
    """Return the conversations in the database at *url*; it connects later. Raises ConfigError without a URL."""
    if not url:
        raise ConfigError("state.backend is postgres: set DATABASE_URL to postgresql://USER@HOST/DATABASE")
    return PostgresConversations(url, clock, clean)


def _brief(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


_COLUMNS = {
    "context_id": "context_id", "session_hash": "session_hash", "skill": "skill", "task_state": "task_state",
    "current_turn": "turn", "version": "version", "agent_state_detail": "detail", "summary": "summary",
    "summary_task": "summary_task", "inputs": "inputs", "input_request_payload": "input_request", "holder": "holder",
    "held_message": "held_message", "held_until": "held_until",
    "resume_token": "resume_key", "event_count": "event_count", "created_at": "created_at", "updated_at": "updated_at",
    "expires_at": "expires_at",
}  # fmt: skip
_FACT_COLUMNS = {
    "bucket": "bucket", "key": "key", "value": "value", "timestamp": "at", "ttl_seconds": "ttl_seconds",
    "expires_at": "expires_at",
}  # fmt: skip
_EVENT_COLUMNS = {
    "sequence": "sequence", "event_type": "type", "payload": "payload", "turn_number": "turn", "timestamp": "at",
    "agent_id": "agent_id", "message_id": "message_id",
}  # fmt: skip
"""Database columns and the field names of the contracts."""


async def _rows(
    database: AsyncConnection[Any], name: str, columns: dict[str, str], context_id: str, order: str
) -> list[dict[str, Any]]:
    query = f"SELECT {', '.join(columns)} FROM {name} WHERE context_id = %s {order}"
    rows = await (await database.execute(query.encode(), (context_id,))).fetchall()
    return [dict(zip(columns.values(), row, strict=True)) for row in rows]


async def _write_state(database: AsyncConnection[Any], state: ConversationState, *, new: bool) -> None:
    values = [_to_sql(getattr(state, name)) for name in _COLUMNS.values()]
    if new:
        marks = ", ".join(["%s"] * len(values))
        query = f"INSERT INTO agent_context_state ({', '.join(_COLUMNS)}) VALUES ({marks})"
        await database.execute(query.encode(), values)
        return
    query = f"UPDATE agent_context_state SET {', '.join(f'{name} = %s' for name in _COLUMNS)} WHERE context_id = %s"
    await database.execute(query.encode(), [*values, state.context_id])


async def _write_rest(database: AsyncConnection[Any], change: ConversationChange, advanced: Advanced) -> None:
    """Write facts, events and messages, and delete those that the change dropped."""
    context_id = change.context_id
    gone = [(context_id, *name) for name in advanced.drop_facts]
    put = [
        (
            context_id,
            *(Jsonb(fact.value) if name == "value" else getattr(fact, name) for name in _FACT_COLUMNS.values()),
        )
        for fact in advanced.put_facts
    ]
    kept = {event.sequence for event in advanced.context.events}
    new = [
        (context_id, event.sequence, event.type, Jsonb(event.payload), event.turn, event.at, event.agent_id)
        for event in advanced.new_events
        if event.sequence in kept
    ]
    async with database.cursor() as cursor:
        if gone:
            await cursor.executemany(
                "DELETE FROM agent_pocket_facts WHERE context_id = %s AND bucket = %s AND key = %s", gone
            )
        if put:
            await cursor.executemany(
                "INSERT INTO agent_pocket_facts (context_id, bucket, key, value, timestamp, ttl_seconds, expires_at) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (context_id, bucket, key) DO UPDATE SET "
                "value = excluded.value, timestamp = excluded.timestamp, ttl_seconds = excluded.ttl_seconds, "
                "expires_at = excluded.expires_at",
                put,
            )
        if new:
            await cursor.executemany(_INSERT_EVENT, [(*event, None) for event in new])
        if advanced.dropped_events:
            last = advanced.dropped_events[-1].sequence
            await cursor.execute(
                "DELETE FROM agent_conversation_events WHERE context_id = %s AND message_id IS NULL AND sequence <= %s",
                (context_id, last),
            )
        if change.message_id is not None:
            state = advanced.context.state
            answered = (
                context_id,
                0,
                MESSAGE,
                Jsonb({"response": advanced.response}),
                state.turn,
                state.updated_at,
                "",
            )
            await cursor.execute(_INSERT_EVENT, (*answered, change.message_id))
        for name in advanced.drop_messages:
            await cursor.execute(
                "DELETE FROM agent_conversation_events WHERE context_id = %s AND message_id = %s", (context_id, name)
            )


_INSERT_EVENT = (
    "INSERT INTO agent_conversation_events "
    "(context_id, sequence, event_type, payload, turn_number, timestamp, agent_id, message_id) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)


async def _answer(database: AsyncConnection[Any], context_id: str, message_id: str) -> JsonObject | None:
    query = "SELECT payload FROM agent_conversation_events WHERE context_id = %s AND message_id = %s"
    row = await (await database.execute(query, (context_id, message_id))).fetchone()
    return None if row is None else row[0]["response"]


def _to_sql(value: Any) -> Any:
    if isinstance(value, dict):
        return Jsonb(value)
    return str(value) if isinstance(value, str) else value
