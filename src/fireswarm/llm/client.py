"""A model with all that its calls need, and the models that stand in for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from fireswarm.contracts.foreign.call import call_foreign
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, TokenUsage
from fireswarm.contracts.ports import ChatModel, Clock
from fireswarm.errors import ModelError
from fireswarm.llm.budget import Ledger, Meter
from fireswarm.llm.codecs.json_tools import JsonTools
from fireswarm.llm.limiter import Limiter
from fireswarm.llm.retry import RetryPolicy
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import ModelSettings
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.spans import AskedModel, record_request


class Substitute(NamedTuple):
    """A model to ask while another one cannot be reached. ``open`` may raise ModelError and ConfigError."""

    maker: str
    open: Callable[[], ModelClient]


@dataclass(frozen=True, slots=True)
class ModelClient:
    """A model with its budget, limiter and retries; shared by all runs of a process.

    ``codec`` writes tool calls as JSON; it is None if the model has native tool calls. ``substitutes`` are asked in
    this order while the model cannot be reached.
    """

    model: ChatModel
    settings: ModelSettings
    clock: Clock
    limiter: Limiter
    meter: Meter
    retry: RetryPolicy = RetryPolicy()
    redact: Redactor = Redactor()
    ledger: Ledger | None = None
    debug_bodies: bool = False
    codec: JsonTools | None = None
    substitutes: tuple[Substitute, ...] = ()
    chance: random.Random = field(default_factory=random.Random)

    @property
    def native_first(self) -> bool:
        """True if the provider should enforce the schema."""
        return self.model.knows_schema and self.settings.structured_output_mode != "json_only"

    async def complete(
        self, request: ChatRequest, on_text: Callable[[str], None] | None, on_broken: Callable[[TokenUsage], None]
    ) -> ChatResponse:
        """Ask the model. Raises ModelError, also if its code cancels itself."""
        call = partial(self.model.complete, request, on_text, on_broken)
        asking = call_foreign(call, f"the code of the model {self.model.name}", ModelError)
        telemetry = telemetry_in_use.get()
        if telemetry is None:
            return await asking
        asked = AskedModel(self.model.provider, self.model.name, self.redact, self.meter.cost)
        return await record_request(telemetry, asking, request, asked)

    async def count_tokens(self, request: ChatRequest) -> int | None:
        """Return the tokens of a request, or None if the provider does not count them. Raises as ``complete``."""
        call = partial(self.model.count_tokens, request)
        return await call_foreign(call, f"the code of the model {self.model.name}", ModelError)
