"""Chat completions through OpenAI's SDK, at OpenAI or any compatible endpoint: Ollama, vLLM, OpenRouter.

Needs the extra ``openai``. The SDK's retries are disabled, so that each attempt is recorded as an event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import openai
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, TokenUsage
from fireswarm.contracts.ports import Embedded, Embedder
from fireswarm.errors import ModelError, ModelRejected
from fireswarm.llm.providers.access import EMBEDDING_SECONDS, connection
from fireswarm.llm.providers.faults import (
    MISSHAPEN,
    bad_options,
    check_vectors,
    cut_short,
    from_status,
    misshapen,
    telling_broken,
    unreachable,
)
from fireswarm.llm.providers.openai_wire import Gathered, response_of, text_of, usage_of, wire_messages
from fireswarm.llm.tokens import estimate_tokens
from fireswarm.settings.agent import ModelSettings

PROVIDER = "openai"
OPENAI_URL = "https://api.openai.com/v1"

_OWN_OPTIONS = ("structured_output", "answer_limit", "effort")

_NO_TOOLS = re.compile(
    r"(?i)does not support (?:tool|function)|support tool use|tool choice requires|tools? (?:is|are) not supported"
)
"""Error texts of Ollama, OpenRouter, vLLM and others for a model without tools."""

_ADVICE_NO_TOOLS = "the model cannot call tools here: set model.decision_mode: json, or choose another model"
_ADVICE_LIMIT = "set options.answer_limit of the provider to the field that the endpoint expects"
_NAMES_LIMIT = re.compile(r"max_(?:completion_)?tokens'? is not supported|use 'max_")


class OpenAiModel:
    """One model at one endpoint. *options* are passed to ``chat.completions.create`` (``temperature``, ...).

    Three of them are specific to fireswarm: ``effort`` is sent as ``reasoning_effort``; ``structured_output`` is
    ``json_object`` for endpoints that enforce no schema; ``answer_limit`` is the name of the field that limits the
    answer's length.
    """

    provider = PROVIDER
    knows_schema = True
    knows_tools = True

    def __init__(
        self,
        name: str,
        api_key: str | None,
        *,
        base_url: str | None = None,
        timeout_seconds: float = 120.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """``timeout_seconds`` is the maximum wait for the next bytes. Without a key, no credentials are sent."""
        self.name = name
        self._options = {key: value for key, value in (options or {}).items() if key not in _OWN_OPTIONS}
        own = {key: value for key, value in (options or {}).items() if key in _OWN_OPTIONS}
        if own.get("effort"):
            self._options["reasoning_effort"] = own["effort"]
        self._by_schema = own.get("structured_output", "schema") == "schema"
        # OpenAI's newer models refuse max_tokens; most other endpoints accept only max_tokens.
        self._limit_field = own.get("answer_limit") or ("max_tokens" if base_url else "max_completion_tokens")
        self.client = openai.AsyncOpenAI(
            api_key=api_key or "",
            base_url=base_url or OPENAI_URL,
            max_retries=0,
            timeout=httpx2.Timeout(timeout_seconds),
            _enforce_credentials=False,
        )
        self.headers: dict[str, Any] = {} if api_key else {"Authorization": openai.Omit()}
        if base_url:  # the SDK reads these from environment variables, and they are for OpenAI only
            self.client.organization = self.client.project = None

    def preview(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body of the request as it would be sent."""
        return self._arguments(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def complete(
        self,
        request: ChatRequest,
        on_text: Callable[[str], None] | None = None,
        on_broken: Callable[[TokenUsage], None] | None = None,
    ) -> ChatResponse:
        """Call the model once. Raises ModelUnavailable or ModelRejected."""
        arguments = self._arguments(request)
        try:
            if on_text is None:
                message, usage = await self._whole(arguments)
            else:
                message, usage = await self._stream(arguments, request, on_text, on_broken)
            return response_of(message, usage, request, self.name)
        except (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise self.fault(error) from error
        except MISSHAPEN as error:
            raise misshapen(PROVIDER, error) from error

    async def count_tokens(self, request: ChatRequest) -> int | None:
        """Return None: chat completions have no token count."""
        return None

    def _arguments(self, request: ChatRequest) -> dict[str, Any]:
        """Return the arguments of ``chat.completions.create``. An option with the value null removes its argument."""
        messages = [wire for message in request.messages for wire in wire_messages(message)]
        arguments: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": "system", "content": request.system}, *messages],
            self._limit_field: request.max_tokens,
        }
        if request.tools:
            arguments["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
            if not request.may_call:
                arguments["tool_choice"] = "none"
        elif request.schema is not None and request.native:
            arguments["response_format"] = _format(request.schema) if self._by_schema else {"type": "json_object"}
        merged = self._options | arguments
        return {name: value for name, value in merged.items() if self._options.get(name, value) is not None}

    def _with_headers(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {**arguments, "extra_headers": {**self.headers, **arguments.get("extra_headers", {})}}

    async def _whole(self, arguments: dict[str, Any]) -> tuple[Gathered, Any]:
        try:
            waiting = self.client.chat.completions.create(**self._with_headers(arguments))
        except TypeError as error:
            raise bad_options(PROVIDER, error) from error
        answer = cast("ChatCompletion", await waiting)
        gathered = Gathered(model=answer.model or "", request_id=answer.id or "")
        gathered.take_whole(_plain(answer.choices[0].message))
        gathered.finish = answer.choices[0].finish_reason
        return gathered, answer.usage

    async def _stream(
        self,
        arguments: dict[str, Any],
        request: ChatRequest,
        on_text: Callable[[str], None],
        on_broken: Callable[[TokenUsage], None] | None,
    ) -> tuple[Gathered, Any]:
        """Stream one answer and pass its text to *on_text*. Raises ModelUnavailable if the stream ends early."""
        wanted = {"stream_options": {"include_usage": True}} | arguments | {"stream": True}
        if self._options.get("stream_options", True) is None:
            del wanted["stream_options"]
        try:
            streaming = self.client.chat.completions.create(**self._with_headers(wanted))
        except TypeError as error:
            raise bad_options(PROVIDER, error) from error
        gathered, usage, begun = Gathered(), None, False

        def count_billed() -> TokenUsage | None:
            return usage_of(usage, request, gathered) if begun else None

        with telling_broken(on_broken, count_billed):
            async with await streaming as stream:
                async for chunk in stream:
                    begun = True
                    gathered.model, gathered.request_id = chunk.model or gathered.model, chunk.id or gathered.request_id
                    usage = chunk.usage or usage
                    for choice in chunk.choices[:1]:
                        delta = _plain(choice.delta) if choice.delta else {}
                        gathered.take_piece(delta)
                        gathered.finish = choice.finish_reason or gathered.finish
                        if text := text_of(delta):
                            on_text(text)
            if gathered.finish is None:
                raise cut_short(PROVIDER)
        return gathered, usage

    def fault(self, error: Exception) -> ModelError:
        """Convert an exception of the SDK to a ModelError."""
        if isinstance(error, openai.APIStatusError):
            return self._refusal(error.status_code, error.message, error.response.headers)
        if isinstance(error, (openai.APIConnectionError, openai.APIResponseValidationError)):
            return unreachable(PROVIDER, error)
        if isinstance(error, openai.APIError):  # inside a stream, after the HTTP status 200
            return self._refusal(_status_in(error.body), error.message, {})
        if isinstance(error, (httpx2.HTTPError, json.JSONDecodeError)):
            return unreachable(PROVIDER, error)
        return ModelRejected(f"{PROVIDER}: {error}")

    def _refusal(self, status: int, message: str, headers: Any) -> ModelError:
        advice = _ADVICE_NO_TOOLS if _NO_TOOLS.search(message) else ""
        if _NAMES_LIMIT.search(message):
            advice = _ADVICE_LIMIT
        return from_status(PROVIDER, status, message, headers, {status: advice} if advice else None)


def _plain(message: BaseModel) -> dict[str, Any]:
    """Return the endpoint's object as plain JSON.

    It may differ from the SDK's types, which would cause a warning for each piece.
    """
    return message.model_dump(mode="json", exclude_unset=True, warnings=False)


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    strict = _is_strict(schema)
    return {"type": "json_schema", "json_schema": {"name": "decision", "schema": schema, "strict": strict}}


def _is_strict(schema: dict[str, Any]) -> bool:
    """Return True if the schema is in OpenAI's strict subset: each object is closed and requires all properties."""
    properties: dict[str, Any] = schema.get("properties", {})
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(properties) != set(schema.get("required", ())):
            return False
    items = [schema["items"]] if isinstance(schema.get("items"), dict) else []
    return all(_is_strict(part) for part in (*properties.values(), *items))


def _status_in(body: object) -> int:
    """Return the status of an error inside a stream; a server error there may succeed on a retry."""
    code = cast("dict[str, Any]", body).get("code") if isinstance(body, dict) else None
    number = int(code) if isinstance(code, (int, str)) and str(code).isdecimal() else 0
    return number if 400 <= number < 600 else 500


def open_model(model: ModelSettings, key: str, _environment: Mapping[str, str], _sends: bool) -> OpenAiModel:
    """Return the configured model at OpenAI, or at an endpoint that needs no key."""
    return OpenAiModel(model.model_name, key or None, **connection(model))


@dataclass(frozen=True, slots=True)
class OpenAiEmbedder:
    """One embedding model at one endpoint. Without a key, no credentials are sent."""

    name: str
    api_key: str | None
    base_url: str | None
    dimensions: int

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> Embedded:
        """Return a vector for each text; questions and documents are alike. Raises ModelUnavailable, ModelRejected."""
        model = OpenAiModel(self.name, self.api_key, base_url=self.base_url, timeout_seconds=EMBEDDING_SECONDS)
        try:
            answer = await model.client.embeddings.create(
                model=self.name,
                input=list(texts),
                dimensions=self.dimensions,
                encoding_format="float",
                extra_headers=model.headers,
            )
            vectors = [tuple(item.embedding) for item in sorted(answer.data, key=lambda item: item.index)]
            tokens = answer.usage.prompt_tokens if answer.usage else 0
        except (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise model.fault(error) from error
        except MISSHAPEN as error:
            raise misshapen(PROVIDER, error) from error
        finally:
            await model.aclose()
        check_vectors(PROVIDER, len(texts), vectors, self.dimensions)
        return Embedded(vectors, tokens or sum(map(estimate_tokens, texts)))


def open_embedder(model: ModelSettings, name: str, key: str, _env: Mapping[str, str], dimensions: int) -> Embedder:
    """Return an embedding model at OpenAI, or at an endpoint that needs no key."""
    return OpenAiEmbedder(name, key or None, model.chosen.base_url, dimensions)
