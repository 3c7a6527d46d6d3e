"""Call skills without a swarm: the configured store of conversations is open only during each call."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import anyio

from fireswarm.clocks import ServerClock, VirtualClock
from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.ports import Clock, Store
from fireswarm.contracts.skills.context import Conversation, ConversationChange
from fireswarm.errors import ConfigError
from fireswarm.settings import Settings, load_settings
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.swarm.conversations.adapter import AgentAdapter
from fireswarm.swarm.opening.open_conversations import IN_STORE, cleaner_for, open_contexts, open_installed
from fireswarm.swarm.opening.open_parts import open_client


@dataclass(frozen=True, slots=True)
class StandAloneConversations:
    """Conversations in the configured store.

    Any event loop may use them, and other processes can use the file between calls.
    """

    settings: Settings
    clock: Clock
    clean: Cleaner = field(default_factory=Cleaner)
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def load(self, context_id: str) -> Conversation | None:
        """Read a conversation, or None."""
        async with self._open() as conversations:
            return await conversations.load(context_id)

    async def apply(self, change: ConversationChange) -> Conversation:
        """Apply a change in one commit."""
        async with self._open() as conversations:
            return await conversations.apply(change)

    async def response(self, context_id: str, message_id: str) -> JsonObject | None:
        """Return the response to a message."""
        async with self._open() as conversations:
            return await conversations.response(context_id, message_id)

    async def prune(self, before: datetime) -> int:
        """Remove conversations that expired before *before*."""
        async with self._open() as conversations:
            return await conversations.prune(before)

    async def close(self) -> None:
        """Do nothing: the store is closed after each call."""

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[DocumentConversations]:
        from fireswarm.storage.firestore.store import FirestoreStore

        nanoseconds = self.clock.nanoseconds if isinstance(self.clock, VirtualClock) else None
        async with self._turn, open_client(self.settings, nanoseconds=nanoseconds) as client:
            store = FirestoreStore(client, self.clock, self.clean.redactor)
            yield DocumentConversations(store, self.clock, self.clean)


def create_agent_adapter(
    skills: Iterable[Path], *, root: Path | None = None, store: Store | None = None, router: bool = False
) -> AgentAdapter:
    """Return an adapter for the skills below these folders, without a swarm.

    Conversations are stored as the settings of *root* say, or in *store*. Raises ConfigError for the store ``memory``,
    which would lose them after each call.
    """
    settings = load_settings(root or Path())
    clock = ServerClock()
    if store is not None:
        contexts = open_contexts(settings, store, clock)
    elif settings.state.backend != IN_STORE:
        contexts = open_installed(settings, clock)
    elif settings.store.uri == "memory":
        raise ConfigError("store memory loses a conversation after each call: use embedded, or pass an open store")
    else:
        contexts = StandAloneConversations(settings, clock, cleaner_for(settings))
    return AgentAdapter(load_catalog(skills), contexts, clock, session=settings.session, router=router)
