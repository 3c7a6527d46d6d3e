"""Provider-independent requests to a model and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from fireswarm.contracts.base import Contract, Json, JsonObject
from fireswarm.contracts.skills.artifact import MediaBlock


class StopReason(StrEnum):
    """Reason why a model stopped, mapped from the providers' terms."""

    END = "end"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    CONTEXT = "context_exceeded"
    OTHER = "other"


class TokenUsage(Contract):
    """Tokens of one call as the provider bills them.

    ``input_tokens`` are billed at full price; ``cached_tokens`` were read from the provider's cache,
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


OWN_ID = "call-"
"""Prefix of our id for a call without an id from its provider, or from another model."""


class ToolCall(Contract):
    """A model's call of a tool. ``fault`` is the reason why its input is unusable, or "".

    ``redacted`` is True if a part of the input was replaced because it looks like a secret.
    """

    id: str
    name: str
    input: JsonObject = Field(default_factory=dict)
    fault: str = ""
    redacted: bool = False

    def with_clean_input(self, cleaned: JsonObject) -> ToolCall:
        """Return the call with the input *cleaned*, without secrets."""
        return self.model_copy(update={"input": cleaned, "redacted": self.redacted or cleaned != self.input})


class ToolOutput(Contract):
    """The result of a tool call. ``call_id`` and ``name`` refer to the call."""

    call_id: str
    name: str
    text: str
    failed: bool = False
    media: tuple[MediaBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool in the form that a model gets. ``parameters`` is the JSON Schema of its input, sent unchanged.

    ``varies`` is True for a tool that differs from role to role. It comes last, so that a provider's cache holds the
    others for all roles.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    varies: bool = False


@dataclass(slots=True)
class ChatMessage:
    """One message. ``wire`` caches the message in the format of a provider's adapter.

    A user's message begins with the ``outputs`` of the calls in the previous message. ``content`` is an answer exactly
    as its provider sent it, and is sent back unchanged; an answer of another model has no ``content`` and is sent as
    text and ``calls``.
    """

    role: Literal["user", "assistant"]
    text: str
    wire: Any = field(default=None, repr=False, compare=False)
    outputs: tuple[ToolOutput, ...] = ()
    content: list[Any] | None = None
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call. ``schema`` requests JSON that matches it; with ``native`` the provider enforces the schema.

    With ``tools``, the model may call them, unless ``may_call`` is false. ``answers`` counts the answers of the
    conversation so far, including those that a summary has replaced; ``for_summary`` marks a request for a summary.
    """

    system: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    schema: dict[str, Any] | None = None
    native: bool = True
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True
    answers: int = 0
    for_summary: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the request as JSON for debugging, the same for every provider."""
        messages: list[dict[str, Any]] = [
            {"role": message.role, "text": message.text}
            | ({"outputs": [output.model_dump(mode="json") for output in message.outputs]} if message.outputs else {})
            | ({"content": message.content} if message.content else {})
            for message in self.messages
        ]
        return {
            "system": self.system,
            "messages": messages,
            "max_tokens": self.max_tokens,
            "native": self.native,
            "tools": [tool.name for tool in self.tools],
        }


class ChatResponse(Contract):
    """One answer: its text, stop reason and usage; its tool calls, and its original ``content`` from the provider.

    ``content`` is empty for an answer to a request without tools.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    content: tuple[Json, ...] = ()
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
