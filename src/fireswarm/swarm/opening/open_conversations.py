"""Open the configured store of conversations."""

from __future__ import annotations

from importlib.metadata import entry_points

from fireswarm.contracts.ports import Clock, ConversationStore, Store
from fireswarm.errors import ConfigError
from fireswarm.runs.make_mind import redactor_for
from fireswarm.settings import Settings
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.conversations.in_store import DocumentConversations

IN_STORE = "firestore"
"""Value of ``state.backend`` for conversations in the swarm's store."""

STORES = "fireswarm.conversation_stores"
"""Group of entry points, each a function of the URL, the clock and the cleaner that returns a ConversationStore."""


def cleaner_for(settings: Settings) -> Cleaner:
    """Return the function that removes secrets from conversations."""
    return Cleaner(redactor_for(settings))


def open_contexts(settings: Settings, store: Store, clock: Clock) -> ConversationStore:
    """Return the conversations in *store*, or where ``state.backend`` (STATE_STORE_BACKEND) says otherwise."""
    if settings.state.backend != IN_STORE:
        return open_installed(settings, clock)
    return DocumentConversations(store, clock, cleaner_for(settings))


def open_installed(settings: Settings, clock: Clock) -> ConversationStore:
    """Return the conversations of the installed store that ``state.backend`` names. Raises ConfigError without it."""
    name = settings.state.backend
    installed = entry_points(group=STORES)
    if name not in installed.names:
        known = ", ".join(sorted({IN_STORE, *installed.names}))
        raise ConfigError(
            f"state.backend (STATE_STORE_BACKEND) is {name}, a store of conversations that is not installed: "
            f"pip install fireswarm-{name}, or use one of {known}"
        )
    return installed[name].load()(settings.state.database_url, clock, cleaner_for(settings))
