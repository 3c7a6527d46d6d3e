"""Conversations in the swarm's store: ``agent_contexts/{context_id}``, with facts and messages as subcollections.

The log is a bounded field of the document, so that a conversation is read with two calls and a turn is one commit.
``writes`` returns the writes for the commit that settles a task, so that both are applied or neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import JsonObject, explain_validation
from fireswarm.contracts.ports import Clock, Create, Delete, Merge, Store, Update, Write
from fireswarm.contracts.skills.context import (
    Conversation,
    ConversationChange,
    ConversationState,
    KeptFact,
    check_context_id,
)
from fireswarm.contracts.skills.conversation import LoggedEvent
from fireswarm.errors import Conflict, InvalidInput, VersionConflict
from fireswarm.storage.conversations.change import Advanced, advance, duplicate, is_duplicate, restore
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import ANSWERED, CONTEXTS, POCKET

PRUNE_BATCH = 50


def context_path(context_id: str) -> str:
    """Path of a conversation's document."""
    return f"{CONTEXTS}/{context_id}"


def fact_path(context_id: str, bucket: str, key: str) -> str:
    """Path of one pocket fact. Bucket and key are hashed, since they may contain any characters."""
    return f"{context_path(context_id)}/{POCKET}/{_hash(f'{bucket}\n{key}')}"


def message_path(context_id: str, message_id: str) -> str:
    """Path of a handled message and its response."""
    return f"{context_path(context_id)}/{ANSWERED}/{_hash(message_id)}"


@dataclass(frozen=True, slots=True)
class DocumentConversations:
    """Conversations in the document store."""

    store: Store
    clock: Clock
    clean: Cleaner = field(default_factory=Cleaner)

    async def load(self, context_id: str) -> Conversation | None:
        """Read a conversation with its facts, or None."""
        path = context_path(check_context_id(context_id))
        snapshot = await self.store.get(path)
        if snapshot.data is None:
            return None
        facts = await self.store.query(queries.pocket(path))
        try:
            return restore(
                ConversationState.model_validate(snapshot.data),
                [KeptFact.model_validate(item.data) for item in facts],
                [LoggedEvent.model_validate(event) for event in snapshot.data.get("events") or ()],
                snapshot.data.get("messages") or (),
                self.clock.now(),
                snapshot.update_time,
            )
        except ValidationError as error:
            raise InvalidInput(f"{path} is not a conversation: {explain_validation(error)}") from error

    async def apply(self, change: ConversationChange) -> Conversation:
        """Apply a change in a separate commit."""
        conversation = await self.load(change.context_id)
        if is_duplicate(conversation, change):
            raise duplicate(change, await self.response(change.context_id, str(change.message_id)))
        advanced = advance(conversation, change, self.clock.now(), self.clean)
        try:
            committed = await self.store.commit(self._write(conversation, change, advanced))
        except Conflict as conflict:
            after = await self.load(change.context_id) if conflict.ambiguous else None
            if after is not None and after.state == advanced.context.state:
                return after  # it was applied, but the response was lost
            raise VersionConflict(
                f"conversation {change.context_id} changed since it was read: nothing was written"
            ) from conflict
        return replace(advanced.context, stamp=committed.update_times[0])

    def writes(self, found: Conversation | None, change: ConversationChange) -> tuple[Advanced, list[Write]]:
        """Apply *change* to *found*; returns the result and its writes, which fail if the conversation changed."""
        advanced = advance(found, change, self.clock.now(), self.clean)
        return advanced, self._write(found, change, advanced)

    async def response(self, context_id: str, message_id: str) -> JsonObject | None:
        """Return the response to a message, or None if it is unknown or was too large."""
        answered = (await self.store.get(message_path(check_context_id(context_id), message_id))).data or {}
        return answered.get("response")

    async def prune(self, before: datetime) -> int:
        """Remove conversations that expired before *before*, with their subcollections."""
        removed = 0
        while batch := await self.store.query(queries.ended_contexts(before, PRUNE_BATCH)):
            for snapshot in batch:
                below = await self.store.query(queries.pocket(snapshot.path))
                messages = (snapshot.data or {}).get("messages") or ()
                paths = [item.path for item in below] + [message_path(snapshot.id, str(name)) for name in messages]
                await self.store.commit([Delete(path) for path in (*paths, snapshot.path)])
                removed += 1
        return removed

    async def close(self) -> None:
        """Do nothing: the owner of the store closes it."""

    def _write(self, found: Conversation | None, change: ConversationChange, advanced: Advanced) -> list[Write]:
        """Return the writes of the conversation's document and its subcollections."""
        state = advanced.context.state
        path = context_path(check_context_id(state.context_id))
        fields: dict[str, Any] = plain(state) | {
            # Empty fields are included: an omitted field would keep its old value.
            "summary": state.summary,
            "summary_task": state.summary_task,
            "inputs": state.inputs,
            "input_request": state.input_request,
            "holder": state.holder,
            "held_message": state.held_message,
            "held_until": state.held_until,
            "detail": state.detail,
            "expires_at": state.expires_at,
            "messages": list(advanced.context.messages),
        }
        if advanced.new_events:
            fields["events"] = [plain(event) for event in advanced.context.events]
        head: Write = Create(path, fields) if found is None else Update(path, fields, if_update_time=found.stamp)
        return [head, *self._below(change, advanced)]

    def _below(self, change: ConversationChange, advanced: Advanced) -> Sequence[Write]:
        """Return the writes of the facts and messages."""
        state = advanced.context.state
        common: dict[str, Any] = {"context_id": state.context_id, "session_hash": state.session_hash}
        put = advanced.context.facts if state.task_state.terminal else advanced.put_facts
        writes: list[Write] = [
            Merge(
                fact_path(state.context_id, fact.bucket, fact.key),
                plain(fact)
                | common
                | {"value": fact.value, "ttl_seconds": fact.ttl_seconds, "expires_at": _sooner(fact, state)},
            )
            for fact in put
        ]
        writes += [Delete(fact_path(state.context_id, *name)) for name in advanced.drop_facts]
        if change.message_id is not None:
            answered = {"message_id": change.message_id, "at": state.updated_at, "response": advanced.response}
            path = message_path(state.context_id, change.message_id)
            writes.append(Merge(path, common | answered | {"expires_at": state.expires_at}))
        if state.task_state.terminal:
            earlier = [name for name in advanced.context.messages if name != change.message_id]
            kept = {"expires_at": state.expires_at}
            writes += [Merge(message_path(state.context_id, name), kept) for name in earlier]
        return writes + [Delete(message_path(state.context_id, name)) for name in advanced.drop_messages]


def _sooner(fact: KeptFact, state: ConversationState) -> datetime | None:
    return min((moment for moment in (fact.expires_at, state.expires_at) if moment is not None), default=None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
