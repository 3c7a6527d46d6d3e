"""Provider-independent requests to a model and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from fireswarm.contracts.base import Contract


class Provider(StrEnum):
    """Provider of the model. ``scripted`` replays fixtures or runs a Python function, without network."""

    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    SCRIPTED = "scripted"


class StopReason(StrEnum):
    """Reason why a model stopped, mapped from the providers' terms."""

    END = "end"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    CONTEXT = "context_exceeded"
    OTHER = "other"


class TokenUsage(Contract):
    """Tokens of one call as the provider bills them.

    ``input_tokens`` are those billed at full price; ``cached_tokens`` were read from the provider's cache,
    ``cache_write_tokens`` written to it. ``output_tokens`` include ``thinking_tokens``.
    """

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    thinking_tokens: int = Field(default=0, ge=0)

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the prompt, cached or not."""
        return self.input_tokens + self.cached_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """All tokens of the call."""
        return self.prompt_tokens + self.output_tokens


@dataclass(slots=True)
class ChatMessage:
    """One message. ``wire`` caches the form that a provider's adapter converted it to."""

    role: Literal["user", "assistant"]
    text: str
    wire: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call. ``schema`` requests JSON that matches it; with ``native`` the provider enforces the schema."""

    system: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    schema: dict[str, Any] | None = None
    native: bool = True


class ChatResponse(Contract):
    """One answer: its text, stop reason and usage."""

    text: str
    stop: StopReason = StopReason.END
    usage: TokenUsage = TokenUsage()
    model: str = ""
    request_id: str = ""


class LlmRequestMeta(Contract):
    """Metadata of a call for an event, never its body."""

    provider: str
    model: str
    attempt: int = Field(ge=1)
    latency_ms: float = Field(default=0.0, ge=0.0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
