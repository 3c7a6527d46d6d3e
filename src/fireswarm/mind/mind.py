"""Dependencies of the model's loop, and the failure of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fireswarm.llm.client import ModelClient
from fireswarm.processes.shell import Shell
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import AgentSettings, ModelSettings
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.routing.rerank import Reranker
from fireswarm.skills.routing.router import Router


class Clients(Protocol):
    """The models of a process."""

    def open(self, model: ModelSettings) -> ModelClient:
        """Return the client of a model. Raises MissingApiKey and ConfigError."""
        ...

    async def close(self) -> None:
        """Close the connections of all models."""
        ...


@dataclass(frozen=True, slots=True)
class Mind:
    """Dependencies shared by all runs of a process. ``no_model`` is the reason why there is no ``client``.

    ``clients`` opens other models than that of the settings.
    """

    settings: AgentSettings
    catalog: Catalog
    router: Router
    shell: Shell
    redact: Redactor
    client: ModelClient | None = None
    no_model: str = ""
    reranker: Reranker | None = None
    clients: Clients | None = None


class RunFailed(Exception):
    """The run failed: a stable code, and a message for people."""

    def __init__(self, reason: str, message: str, error: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error
