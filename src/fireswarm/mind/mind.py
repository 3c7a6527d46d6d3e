"""Dependencies of the model's loop, and the failure of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fireswarm.contracts.llm.chat import ChatResponse
from fireswarm.contracts.llm.decision import ModelDecision
from fireswarm.errors import MissingApiKey
from fireswarm.llm.budget import Spend
from fireswarm.llm.client import ModelClient
from fireswarm.llm.prompt import Part
from fireswarm.processes.shell import Shell
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import AgentSettings
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.routing.rerank import Reranker
from fireswarm.skills.routing.router import Router


@dataclass(frozen=True, slots=True)
class Mind:
    """Dependencies shared by all runs of a process. Without a ``client``, ``no_model`` is the reason."""

    settings: AgentSettings
    catalog: Catalog
    router: Router
    shell: Shell
    redact: Redactor
    client: ModelClient | None = None
    no_model: str = ""
    reranker: Reranker | None = None

    @property
    def calls_tools(self) -> bool:
        """True if the model decides by calling tools, and not by JSON."""
        return self.client is not None and self.client.calls_tools


@dataclass(slots=True)
class NoModel:
    """Takes the place of ``Asking`` where no model can be called; every call raises MissingApiKey."""

    reason: str
    spent: Spend = field(default_factory=Spend)
    could_call: bool = True
    said: str = ""

    async def compose(self, turn: int, keep: Callable[[], tuple[Part, ...]] = tuple) -> tuple[str, ...]:
        """Raise MissingApiKey."""
        raise MissingApiKey(self.reason)

    async def ask(self, turn: int, attempt: int) -> ChatResponse:
        """Raise MissingApiKey."""
        raise MissingApiKey(self.reason)

    def take_calls(self, turn: int, answer: ChatResponse) -> ModelDecision:
        """Raise MissingApiKey."""
        raise MissingApiKey(self.reason)

    def decode(self, turn: int, attempt: int, answer: ChatResponse) -> ModelDecision | None:
        """Raise MissingApiKey."""
        raise MissingApiKey(self.reason)


class RunFailed(Exception):
    """The run failed: a stable code, and a message for people."""

    def __init__(self, reason: str, message: str, error: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error
