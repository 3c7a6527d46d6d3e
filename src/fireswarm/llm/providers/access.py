"""Access to a provider: by a key, or by credentials of an account that are renewed. Errors include advice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fireswarm.errors import ModelError, ModelRejected
from fireswarm.llm.providers.faults import from_status
from fireswarm.settings.agent import ModelSettings

EMBEDDING_SECONDS = 10.0
"""Maximum wait for the next bytes of an answer with vectors."""


def connection(model: ModelSettings) -> dict[str, Any]:
    """Return the arguments that the adapters of all providers take."""
    return {
        "base_url": model.chosen.base_url,
        "timeout_seconds": model.request_timeout_seconds,
        "options": model.chosen.options,
    }


class KeyAccess:
    """Access by an API key, or without one. Base of the other kinds of access; a key needs no preparation."""

    advice: Mapping[int, str] = {}
    """Advice by HTTP status, where it differs from the usual advice."""

    faults: tuple[type[Exception], ...] = ()
    """Exception types of the libraries that get credentials."""

    def __init__(self, provider: str) -> None:
        """Set the provider's name as in the settings."""
        self.provider = provider

    async def prepare(self) -> str:
        """Prepare the next request, and return its token. Raises ModelUnavailable or ModelRejected."""
        return ""

    def accept(self) -> None:
        """Note that the provider accepted the credentials."""

    def fault_of(self, error: Exception) -> ModelError:
        """Convert one of the exceptions in ``faults``."""
        return ModelRejected(f"{self.provider}: the credentials cannot be used: {error}")

    def refusal(self, status: int, message: str, headers: Mapping[str, Any], token: str) -> ModelError:
        """Return the error for an HTTP status, with advice for this kind of access; *token* was sent."""
        return from_status(self.provider, status, message, headers, self.advice)
