"""The models of a process: each is opened on first use, since roles and tasks may choose their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from fireswarm.contracts.ports import ChatModel, Clock, Store
from fireswarm.llm.budget import Ledger, Meter
from fireswarm.llm.client import ModelClient, Substitute
from fireswarm.llm.codecs.json_tools import JsonTools
from fireswarm.llm.limiter import FirestoreLimits, Limiter
from fireswarm.llm.retry import RetryPolicy
from fireswarm.redaction import Redactor
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import AgentSettings
from fireswarm.settings.agent import ModelSettings

RETRIES_BEFORE_FALLBACK = 3
"""Maximum number of retries of a model that has a fallback: some seconds, instead of minutes."""


@dataclass(slots=True)
class ModelClients:
    """Opens models, and keeps them. All models of a provider share its rate limits, over all processes on *store*.

    ``given`` stands for the model of the settings. ``protocol`` tells models without tools how to call them.
    """

    settings: AgentSettings
    root: Path
    environment: Mapping[str, str]
    clock: Clock
    redact: Redactor
    protocol: str
    store: Store | None = None
    ledger: Ledger | None = None
    given: ChatModel | None = None
    _opened: dict[str, ModelClient] = field(default_factory=dict[str, ModelClient])
    _limiters: dict[str, Limiter] = field(default_factory=dict[str, Limiter])

    def open(self, model: ModelSettings) -> ModelClient:
        """Return the client of a model, with its limits, budget, retries and fallbacks.

        Raises MissingApiKey and ConfigError.
        """
        key = model.choice.model_dump_json()
        if key not in self._opened:
            self._opened[key] = self._client(model)
        return self._opened[key]

    def _client(self, model: ModelSettings) -> ModelClient:
        settings, runtime = self.settings.model_copy(update={"model": model}), self.settings.runtime
        is_given = self.given is not None and model.full_name == self.settings.model.full_name
        adapter = (
            self.given if self.given is not None and is_given else make_model(settings, self.root, self.environment)
        )
        behind = [model.behind(number) for number in range(len(model.fallback))]
        retries = min(runtime.max_llm_retries, RETRIES_BEFORE_FALLBACK) if behind else runtime.max_llm_retries
        uses_tools = adapter.knows_tools and model.decision_mode == "tools"
        return ModelClient(
            adapter,
            model,
            self.clock,
            self._limiter(adapter, model),
            Meter(self.settings.budget, adapter.name),
            RetryPolicy(retries, runtime.retry_base_delay_seconds, runtime.retry_max_delay_seconds),
            self.redact,
            self.ledger,
            self.settings.logging.debug_llm_bodies,
            None if uses_tools else JsonTools(self.protocol),
            tuple(Substitute(f"{each.provider}/{each.model_name}", partial(self.open, each)) for each in behind),
        )

    def _limiter(self, adapter: ChatModel, model: ModelSettings) -> Limiter:
        """Return the limiter of the model's provider."""
        name = adapter.provider
        if name not in self._limiters:
            limits = (model.chosen.requests_per_minute, model.chosen.tokens_per_minute)
            shared = FirestoreLimits(self.store, self.clock, name, *limits) if self.store is not None else None
            longest = self.settings.runtime.retry_max_delay_seconds
            self._limiters[name] = Limiter(self.clock, *limits, shared, longest)
        return self._limiters[name]

    async def close(self) -> None:
        """Close the connections of all models."""
        with anyio.CancelScope(shield=True):
            for client in self._opened.values():
                close: Any = getattr(client.model, "aclose", None)
                if close is not None:
                    await close()
