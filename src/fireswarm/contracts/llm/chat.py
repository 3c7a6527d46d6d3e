"""What is asked of a model and what it answers, whichever provider serves it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from fireswarm.contracts.base import Contract


class Provider(StrEnum):
    """Who serves the model. ``scripted`` replays fixtures or runs a plain function: no network."""

    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    SCRIPTED = "scripted"


class StopReason(StrEnum):
    """Why a model stopped, in the providers' common words."""

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
    """One message. ``wire`` keeps what a provider's adapter made of it, so that it is converted once."""

    role: Literal["user", "assistant"]
    text: str
    wire: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call. ``schema`` asks for JSON that fits it; ``native`` says by the provider's own means."""

    system: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    schema: dict[str, Any] | None = None
    native: bool = True


class ChatResponse(Contract):
    """One answer: its text, why it stopped, and what it cost."""

    text: str
    stop: StopReason = StopReason.END
    usage: TokenUsage = TokenUsage()
    model: str = ""
    request_id: str = ""


class LlmRequestMeta(Contract):
    """What an event says of a call: never its body."""

    provider: str
    model: str
    attempt: int = Field(ge=1)
    latency_ms: float = Field(default=0.0, ge=0.0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
