"""Open the configured store of conversations, and call skills without a swarm."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fireswarm.clocks import ServerClock
from fireswarm.contracts.ports import Clock, ConversationStore, Store
from fireswarm.errors import ConfigError
from fireswarm.runs.make_mind import redactor_for
from fireswarm.settings import Settings, load_settings
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.swarm.conversations.adapter import AgentAdapter


def open_contexts(settings: Settings, store: Store | None, clock: Clock) -> ConversationStore:
    """Return the store of conversations chosen by ``state.backend`` (STATE_STORE_BACKEND).

    Raises ConfigError if the backend's database URL or store is missing.
    """
    clean = Cleaner(redactor_for(settings))
    state = settings.state
    if state.backend == "sqlite":
        from fireswarm.storage.conversations.sqlite import SqliteContexts

        return SqliteContexts(settings.path(state.folder), clock, clean)
    if state.backend == "postgres":
        from fireswarm.storage.conversations.postgres import PostgresContexts

        if not state.database_url:
            raise ConfigError("STATE_STORE_BACKEND is postgres: set DATABASE_URL to postgresql://USER@HOST/DATABASE")
        return PostgresContexts(state.database_url, clock, clean)
    if store is None:
        raise ConfigError("STATE_STORE_BACKEND is firestore: open the swarm's store, or use sqlite or postgres")
    return DocumentConversations(store, clock, clean)


def create_agent_adapter(
    skills: Iterable[Path], *, root: Path | None = None, store: Store | None = None, router: bool = False
) -> AgentAdapter:
    """Return an adapter for the skills below these folders, without a swarm.

    The settings of *root* choose the store of conversations. Without a *store*, the backend ``firestore`` is replaced
    by
    ``sqlite``.
    """
    settings = load_settings(root or Path())
    if store is None and settings.state.backend == "firestore":
        settings = settings.model_copy(update={"state": settings.state.model_copy(update={"backend": "sqlite"})})
    clock = ServerClock()
    contexts = open_contexts(settings, store, clock)
    return AgentAdapter(load_catalog(skills), contexts, clock, session=settings.session, router=router)
