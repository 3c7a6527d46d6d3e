"""Conversations in each store that keeps them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from firelite.database import Database
from firelite.query.index_definitions import IndexSet
from firelite.wire.inprocess import connect
from firelite.wire.server import Server
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.ports import ConversationStore
from fireswarm.redaction import Redactor
from fireswarm.settings import load_settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.storage.conversations.cleaning import Cleaner
from fireswarm.storage.conversations.in_store import DocumentConversations
from fireswarm.storage.firestore.store import FirestoreStore
from fireswarm.swarm.opening.open_parts import open_client
from fireswarm.swarm.opening.stand_alone import StandAloneConversations
from fireswarm_postgres.store import PostgresConversations

CLEAN = Cleaner(Redactor(["hunter2-hunter2"]))


@contextlib.asynccontextmanager
async def opened(backend: str, clock: VirtualClock, folder: Path, url: str = "") -> AsyncGenerator[ConversationStore]:
    """Open conversations in one of the backends."""
    if backend == "stand-alone":
        yield StandAloneConversations(load_settings(folder, environment={}), clock, CLEAN)
        return
    if backend == "postgres":
        kept = PostgresConversations(url, clock, CLEAN)
        await kept.migrate()
        assert await kept.migrate() == 0, "a second time there is nothing to do"
        yield kept
        await kept.close()
        return
    indexes = IndexSet.load(packaged_path("firestore.indexes.json"))
    with Database.open(None, indexes=indexes, clock=clock.nanoseconds) as database:
        if backend == "embedded":
            yield DocumentConversations(FirestoreStore(connect(database), clock), clock, CLEAN)
            return
        async with Server(database) as server:
            served = load_settings(folder, environment={}, overrides={"store.uri": f"firelite://{server.endpoint}"})
            async with open_client(served) as client:
                yield DocumentConversations(FirestoreStore(client, clock), clock, CLEAN)
