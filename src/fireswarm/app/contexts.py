"""Where conversations are kept, and skills called without a swarm: the one place that names these adapters."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fireswarm.app.minds import redactor_for
from fireswarm.clocks import ServerClock
from fireswarm.conversations.adapter import AgentAdapter
from fireswarm.conversations.cleaning import Cleaner
from fireswarm.conversations.documents import StoreContexts
from fireswarm.errors import ConfigError
from fireswarm.ports import Clock, Contexts, Store
from fireswarm.settings import Settings, load_settings
from fireswarm.skills.catalog import load_catalog


def open_contexts(settings: Settings, store: Store | None, clock: Clock) -> Contexts:
    """Conversations as ``state.backend`` (STATE_STORE_BACKEND) says. ConfigError says what it lacks."""
    clean = Cleaner(redactor_for(settings))
    state = settings.state
    if state.backend == "sqlite":
        from fireswarm.stores.contexts_sqlite import SqliteContexts

        return SqliteContexts(settings.path(state.folder), clock, clean)
    if state.backend == "postgres":
        from fireswarm.stores.contexts_postgres import PostgresContexts

        if not state.database_url:
            raise ConfigError("STATE_STORE_BACKEND is postgres: set DATABASE_URL to postgresql://USER@HOST/DATABASE")
        return PostgresContexts(state.database_url, clock, clean)
    if store is None:
        raise ConfigError("STATE_STORE_BACKEND is firestore: open the swarm's store, or use sqlite or postgres")
    return StoreContexts(store, clock, clean)


def create_agent_adapter(
    skills: Iterable[Path], *, root: Path | None = None, store: Store | None = None, router: bool = False
) -> AgentAdapter:
    """An adapter over the skills below these folders, without a swarm.

    Conversations are kept as the settings of *root* say; without a *store*, ``firestore`` stands for files.
    """
    settings = load_settings(root or Path())
    if store is None and settings.state.backend == "firestore":
        settings = settings.model_copy(update={"state": settings.state.model_copy(update={"backend": "sqlite"})})
    clock = ServerClock()
    contexts = open_contexts(settings, store, clock)
    return AgentAdapter(load_catalog(skills), contexts, clock, session=settings.session, router=router)
