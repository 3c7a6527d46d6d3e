"""The search of memory by meaning, if the settings and the environment allow it."""

from __future__ import annotations

import os
from functools import partial

from fireswarm.contracts.ports import Clock, Store
from fireswarm.llm.budget import Spend
from fireswarm.llm.spend import StoreLedger
from fireswarm.runs.make_mind import redactor_for
from fireswarm.runs.model_adapters import embedding_model, open_embedder
from fireswarm.settings import Settings
from fireswarm.settings.model_limits import price_of
from fireswarm.storage.documents.indexes import VECTOR_DIMENSIONS
from fireswarm.storage.memory.vectors import FactVectors


def fact_vectors(
    settings: Settings, store: Store, clock: Clock, ledger: StoreLedger, thinks: bool
) -> FactVectors | None:
    """Return the search by meaning, or None. The model is opened by the first recall.

    Its tokens are counted for the session and the day. A process that *thinks* stores the figures with its journal.
    """
    model = embedding_model(settings, settings.memory, os.environ) if settings.worker.think == "auto" else None
    if model is None:
        return None

    async def count(session: str, name: str, tokens: int) -> None:
        price = price_of(name, settings.budget.prices)
        usd = None if price is None else tokens * price.get("input", 0.0) / 1_000_000
        own = ledger.of_session(session)
        await own.add(Spend.of_call(tokens, usd))
        if not thinks and (writes := own.writes()):
            await store.commit(writes)
            own.mark_stored(writes)

    opened = partial(open_embedder, settings, model, os.environ, VECTOR_DIMENSIONS)
    return FactVectors(store, clock, opened, redactor_for(settings).text, count)
