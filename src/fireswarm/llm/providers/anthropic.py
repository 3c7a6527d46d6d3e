"""Claude through Anthropic's SDK: at Anthropic, on Vertex AI, on Bedrock.

The SDK's retries are disabled, so that each attempt is recorded as an event.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import anthropic
import httpx2
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.streaming import AsyncMessageStream
from anthropic.lib.vertex import AsyncAnthropicVertex
from anthropic.resources.messages import AsyncMessages

from fireswarm.contracts.base import encode_json
from fireswarm.contracts.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    StopReason,
    TokenUsage,
    ToolOutput,
    ToolSpec,
)
from fireswarm.contracts.llm.received import call_of, storable, without_surrogates
from fireswarm.errors import ModelError, ModelRejected
from fireswarm.llm.prompt import NO_ANSWER
from fireswarm.llm.providers.access import KeyAccess, connection
from fireswarm.llm.providers.faults import MISSHAPEN, bad_options, cut_short, misshapen, telling_broken, unreachable
from fireswarm.llm.tokens import estimate_tokens
from fireswarm.settings.agent import ModelSettings

PROVIDER = "anthropic"
DECISION_TOOL = "decide"
PDF = "application/pdf"

_STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.END,
    "max_tokens": StopReason.MAX_TOKENS,
    "refusal": StopReason.REFUSAL,
    "model_context_window_exceeded": StopReason.CONTEXT,
}
_STATUS_OF = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "throttlingException": 429,
    "validationException": 400,
}
"""HTTP status by error type.

An error inside a stream comes after the HTTP status 200, so its type determines the status.
"""

_FOR_SDK = frozenset({"extra_body", "extra_headers", "extra_query", "timeout", "user_profile_id", "workspace_id"})
"""Arguments of ``messages.create`` that are not fields of the body."""

_OPTIONS = frozenset(inspect.signature(AsyncMessages.create).parameters) - {"self", "stream"}

_ADDED = ("parsed_output",)
"""Fields of blocks that the SDK adds in a stream."""

_CACHED = {"type": "ephemeral"}


_THOUGHTS = ("thinking", "redacted_thinking")

LEAST_THINKING_TOKENS = 1_024
"""Smallest thinking budget that the API accepts."""

MARKED_MESSAGES = 2
"""Number of last user messages that end with a cache marker.

The API searches the cache at a marker and up to 20 blocks before it; an answer may have more calls than that, so the
end of the previous request is marked too.
"""

Client = anthropic.AsyncAnthropic | AsyncAnthropicVertex | AsyncAnthropicBedrock


class AnthropicModel:
    """One Claude model. *options* are passed to ``messages.create`` (``thinking``, ``temperature``, ...).

    Two of them are specific to fireswarm: ``effort`` goes into ``output_config``, and ``structured_output: tool``
    requests the decision through a strict tool instead of a JSON Schema (for models that support only tools).
    """

    knows_schema = True
    knows_tools = True

    def __init__(
        self, name: str, client: Client, access: KeyAccess | None = None, *, options: Mapping[str, Any] | None = None
    ) -> None:
        """Call *name* through the SDK's client for a platform."""
        self.name = name
        self._access = access or KeyAccess(PROVIDER)
        self.provider = self._access.provider
        self._options = dict(options or {})
        self._effort = self._options.pop("effort", None)
        self._by_tool = self._options.pop("structured_output", "schema") == "tool"
        self._client = client
        self._is_direct = isinstance(client, anthropic.AsyncAnthropic)
        self._counts = not isinstance(client, AsyncAnthropicBedrock)

    @classmethod
    def direct(
        cls,
        name: str,
        api_key: str,
        *,
        base_url: str | None = None,
        timeout_seconds: float = 120.0,
        options: Mapping[str, Any] | None = None,
    ) -> AnthropicModel:
        """Return a model at Anthropic. ``timeout_seconds`` is the maximum wait for the next bytes."""
        client = anthropic.AsyncAnthropic(
            api_key=api_key, base_url=base_url, max_retries=0, timeout=httpx2.Timeout(timeout_seconds)
        )
        return cls(name, client, options=options)

    def preview(self, request: ChatRequest) -> dict[str, Any]:
        """The body of the request as it would be sent."""
        return self._arguments(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def complete(
        self,
        request: ChatRequest,
        on_text: Callable[[str], None] | None = None,
        on_broken: Callable[[TokenUsage], None] | None = None,
    ) -> ChatResponse:
        """Call the model once. Raises ModelUnavailable or ModelRejected."""
        arguments = self._arguments(request)
        token = await self._access.prepare()
        try:
            if on_text is None:
                response = await self._whole(arguments, request)
            else:
                response = await self._stream(arguments, request, on_text, on_broken)
        except (anthropic.AnthropicError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise self._fault(error, token) from error
        except self._access.faults as error:
            raise self._access.fault_of(error) from error
        except MISSHAPEN as error:
            raise misshapen(self.provider, error) from error
        self._access.accept()
        return response

    async def count_tokens(self, request: ChatRequest) -> int | None:
        """Return the provider's token count of the prompt; Bedrock does not count."""
        if not self._counts:
            return None
        arguments = self._arguments(request)
        token = await self._access.prepare()
        allowed = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
        try:
            counted = await self._client.messages.count_tokens(
                **{name: arguments[name] for name in allowed if name in arguments}
            )
            return int(counted.input_tokens)
        except (anthropic.AnthropicError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise self._fault(error, token) from error
        except MISSHAPEN as error:
            raise misshapen(self.provider, error) from error

    def _arguments(self, request: ChatRequest) -> dict[str, Any]:
        """Return the arguments of ``messages.create``."""
        arguments: dict[str, Any] = {
            **self._options,
            "model": self.name,
            "max_tokens": request.max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": _CACHED}],
            "messages": _mark_last([_wire(message) for message in request.messages]),
        }
        if request.tools:
            arguments["tools"] = _tools_of(request.tools)
            if not request.may_call:
                arguments["tool_choice"] = {"type": "none"}
        output: dict[str, Any] = {"effort": self._effort} if self._effort else {}
        if request.schema is not None and request.native and self._by_tool:
            tool = {"name": DECISION_TOOL, "description": "Say what to do next.", "input_schema": request.schema}
            arguments["tools"] = [tool | {"strict": True}]
            arguments["tool_choice"] = {"type": "tool", "name": DECISION_TOOL}
        elif request.schema is not None and request.native:
            output["format"] = {"type": "json_schema", "schema": request.schema}
        if output:
            arguments["output_config"] = output
        _fit_thinking(arguments)
        return arguments

    async def _whole(self, arguments: dict[str, Any], request: ChatRequest) -> ChatResponse:
        """Request one answer through the SDK, without copying the body or converting the answer.

        Both would take a third of the time of a call. The clients of other platforms modify the body, so they get a
        copy.
        """
        if unknown := sorted(self._options.keys() - _OPTIONS):
            raise bad_options(self.provider, TypeError(f"messages.create has no argument {', '.join(unknown)}"))
        if self._is_direct and not self._options.keys() & _FOR_SDK:
            response = await self._client.post("/v1/messages", cast_to=httpx2.Response, content=encode_json(arguments))
        else:
            response = (await self._client.messages.with_raw_response.create(**arguments)).http_response
        return _response(json.loads(response.content), request)

    async def _stream(
        self,
        arguments: dict[str, Any],
        request: ChatRequest,
        on_text: Callable[[str], None],
        on_broken: Callable[[TokenUsage], None] | None,
    ) -> ChatResponse:
        """Stream one answer and pass its text to *on_text*. Raises ModelUnavailable if the stream ends early."""
        try:
            streaming = self._client.messages.stream(**arguments)
        except TypeError as error:
            raise bad_options(self.provider, error) from error
        async with streaming as stream:
            with telling_broken(on_broken, lambda: _count_billed(stream)):
                ended = False
                async for event in stream:
                    if event.type == "text":
                        on_text(event.text)
                    elif event.type == "input_json" and self._by_tool:
                        on_text(event.partial_json)
                    ended = ended or event.type == "message_stop"
                if not ended:
                    raise cut_short(self.provider)
                message = await stream.get_final_message()
                return _response(message.model_dump(mode="json", exclude_unset=True, warnings=False), request)

    def _fault(self, error: Exception, token: str) -> ModelError:
        """Convert an exception of the SDK to a ModelError."""
        if isinstance(error, anthropic.APIStatusError):
            status = error.status_code
            if status < 400:
                status = _STATUS_OF.get(_type_of(error.body), 500)
            return self._access.refusal(status, error.api_message or str(error), error.response.headers, token)
        if isinstance(error, (anthropic.APIConnectionError, httpx2.HTTPError, json.JSONDecodeError)):
            return unreachable(self.provider, error)
        if isinstance(error, anthropic.APIResponseValidationError):
            return unreachable(self.provider, error)
        return ModelRejected(f"{self.provider}: {error}")


def _fit_thinking(arguments: dict[str, Any]) -> None:
    """Adjust ``thinking`` with a budget to the API's rules: less than ``max_tokens``, or disabled.

    An answer whose calls are being answered must begin with a thought. The thought is missing if another model gave the
    answer, or if the thought had a secret.
    """
    thinking = arguments.get("thinking")
    if not isinstance(thinking, dict) or cast("dict[str, Any]", thinking).get("type") != "enabled":
        return
    budget, limit = cast("dict[str, Any]", thinking).get("budget_tokens"), arguments["max_tokens"]
    answers = [message for message in arguments["messages"] if message["role"] == "assistant"]
    blocks = answers[-1]["content"] if answers and isinstance(answers[-1]["content"], list) else []
    has_calls = any(block["type"] == "tool_use" for block in blocks)
    if (has_calls and blocks[0]["type"] not in _THOUGHTS) or limit <= LEAST_THINKING_TOKENS:
        arguments["thinking"] = {"type": "disabled"}
    elif isinstance(budget, int) and budget >= limit:
        arguments["thinking"] = {**thinking, "budget_tokens": max(LEAST_THINKING_TOKENS, limit // 2)}


def _tools_of(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools, with a cache marker on the last of those that all roles have: other roles find it there."""
    wire: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
    ]
    shared = sum(not tool.varies for tool in tools)
    if 0 < shared < len(tools):
        wire[shared - 1]["cache_control"] = _CACHED
    return wire


def _mark_last(messages: list[Any]) -> list[Any]:
    """Return the messages with a cache marker on the last block of each of the last user messages."""
    last = [number for number, message in enumerate(messages) if message["role"] == "user"][-MARKED_MESSAGES:]
    return [_with_marker(message) if number in last else message for number, message in enumerate(messages)]


def _with_marker(message: dict[str, Any]) -> dict[str, Any]:
    *blocks, last = message["content"]
    return {**message, "content": [*blocks, {**last, "cache_control": _CACHED}]}


def _wire(message: ChatMessage) -> Any:
    if message.wire is None:
        if message.content is not None or message.calls:
            content = _answer_blocks(message)
        else:
            content = [_result_block(output) for output in message.outputs]
            if message.text or not content:
                content.append({"type": "text", "text": message.text})
        message.wire = {"role": message.role, "content": content}
    return message.wire


def _answer_blocks(message: ChatMessage) -> list[Any]:
    """Return an answer as blocks, unchanged except for empty texts, which the API sends but refuses."""
    if message.content is not None:
        kept = [block for block in message.content if block.get("type") != "text" or block["text"].strip()]
        return kept or [{"type": "text", "text": NO_ANSWER}]
    calls = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in message.calls]
    return [*([{"type": "text", "text": message.text}] if message.text != NO_ANSWER else []), *calls]


def _result_block(output: ToolOutput) -> dict[str, Any]:
    """Return the result of a call as a block. An empty text is left out, since the API refuses it."""
    content: list[dict[str, Any]] = [{"type": "text", "text": output.text}] if output.text else []
    for item in output.media:
        source = {"type": "base64", "media_type": item.media_type, "data": item.data}
        content.append({"type": "document" if item.media_type == PDF else "image", "source": source})
    block = {"type": "tool_result", "tool_use_id": output.call_id, "content": content}
    return block | ({"is_error": True} if output.failed else {})


def _response(answer: dict[str, Any], request: ChatRequest) -> ChatResponse:
    """Convert a message of the API. A decision made through the single tool of a schema becomes JSON text."""
    blocks: list[dict[str, Any]] = answer["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    used = [block for block in blocks if block["type"] == "tool_use"]
    calls, content = (), ()
    if request.tools:
        calls = tuple(call_of(block["id"], block["name"], block["input"]) for block in used)
        content = tuple(_as_received(block) for block in blocks)
    elif used:
        text = json.dumps(used[0]["input"], ensure_ascii=False)
    return ChatResponse(
        text=without_surrogates(text),
        calls=calls,
        content=content,
        stop=_STOPS.get(str(answer.get("stop_reason")), StopReason.OTHER),
        usage=_usage(answer["usage"]),
        model=str(answer.get("model", "")),
        request_id=str(answer.get("id", "")),
    )


def _usage(usage: dict[str, Any]) -> TokenUsage:
    details: dict[str, Any] = usage.get("output_tokens_details") or {}
    return TokenUsage(
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cached_tokens=usage.get("cache_read_input_tokens") or 0,
        cache_write_tokens=usage.get("cache_creation_input_tokens") or 0,
        thinking_tokens=details.get("thinking_tokens") or 0,
    )


def _count_billed(stream: AsyncMessageStream[Any]) -> TokenUsage | None:
    """Return the billed usage of an interrupted answer; its output is estimated: the API counts it only at the end."""
    try:
        answer = stream.current_message_snapshot.model_dump(mode="json", exclude_unset=True, warnings=False)
    except AssertionError:  # the answer has not begun
        return None
    written = estimate_tokens(json.dumps(answer["content"], ensure_ascii=False))
    usage = _usage(answer["usage"])
    return usage.model_copy(update={"output_tokens": max(usage.output_tokens, written)})


def _as_received(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as the API sent it, without fields that the SDK added."""
    return storable({name: value for name, value in block.items() if value is not None and name not in _ADDED})


def _type_of(body: object) -> str:
    if not isinstance(body, dict):
        return ""
    inner = cast("dict[str, Any]", body).get("error")
    return str(cast("dict[str, Any]", inner).get("type", "")) if isinstance(inner, dict) else ""


def open_model(model: ModelSettings, key: str, _environment: Mapping[str, str], _sends: bool) -> AnthropicModel:
    """Return the configured model at Anthropic."""
    return AnthropicModel.direct(model.model_name, key, **connection(model))
