"""Open the configured store of conversations."""

from __future__ import annotations

from fireswarm.contracts.ports import Clock, ConversationStore, Store
from fireswarm.errors import ConfigError
from fireswarm.runs.make_mind import redactor_for
from fireswarm.settings import Settings
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.storage.conversations.postgres import PostgresContexts


def cleaner_for(settings: Settings) -> Cleaner:
    """Return the function that removes secrets from conversations."""
    return Cleaner(redactor_for(settings))


def open_contexts(settings: Settings, store: Store, clock: Clock) -> ConversationStore:
    """Return the store of conversations chosen by ``state.backend`` (STATE_STORE_BACKEND): *store*, or PostgreSQL."""
    if settings.state.backend == "postgres":
        return open_postgres(settings, clock)
    return DocumentConversations(store, clock, cleaner_for(settings))


def open_postgres(settings: Settings, clock: Clock) -> PostgresContexts:
    """Return the conversations in the database of DATABASE_URL. Raises ConfigError if there is no URL."""
    if not settings.state.database_url:
        raise ConfigError("STATE_STORE_BACKEND is postgres: set DATABASE_URL to postgresql://USER@HOST/DATABASE")
    return PostgresContexts(settings.state.database_url, clock, cleaner_for(settings))
