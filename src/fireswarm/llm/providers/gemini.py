"""Gemini through Google's SDK: by a key, or on Vertex AI.

The SDK's retries, continuation and function calling are disabled: one request per call.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.llm.chat import (
    OWN_ID,
    ChatMessage,
    ChatRequest,
    ChatResponse,
    StopReason,
    TokenUsage,
    ToolCall,
    ToolOutput,
)
from fireswarm.contracts.llm.received import call_of, storable, without_surrogates
from fireswarm.errors import ModelError, ModelRejected
from fireswarm.llm.prompt import NO_ANSWER
from fireswarm.llm.providers.access import KeyAccess, connection
from fireswarm.llm.providers.faults import MISSHAPEN, bad_options, cut_short, misshapen, telling_broken, unreachable
from fireswarm.llm.tokens import estimate_tool, estimate_usage
from fireswarm.settings.agent import ModelSettings

if TYPE_CHECKING:
    from fireswarm.llm.providers.google_access import GoogleAccess

PROVIDER = "gemini"
API_VERSION = "v1beta"
VERTEX_VERSION = "v1beta1"
"""Set explicitly, since the SDK's default changed between versions; this version supports all features in use."""

UNSIGNED = base64.urlsafe_b64decode("skip_thought_signature_validator")
"""Google's placeholder signature for a call of another model in the history; the SDK writes it as this text."""

_STOPS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "SAFETY": StopReason.REFUSAL,
    "RECITATION": StopReason.REFUSAL,
    "BLOCKLIST": StopReason.REFUSAL,
    "PROHIBITED_CONTENT": StopReason.REFUSAL,
    "SPII": StopReason.REFUSAL,
}


class GeminiModel:
    """One Gemini model. *options* are passed to the generation config (``thinking_config``, ``temperature``, ...).

    ``effort`` is sent as the level of thinking.
    """

    knows_schema = True
    knows_tools = True

    def __init__(
        self,
        name: str,
        api_key: str | None,
        *,
        access: GoogleAccess | None = None,
        base_url: str | None = None,
        timeout_seconds: float = 120.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """With *access*, call the model on Vertex AI. ``timeout_seconds`` is the maximum wait for the next bytes."""
        self.name = name
        self._options = dict(options or {})
        if effort := self._options.pop("effort", None):
            self._options["thinking_config"] = {**self._options.get("thinking_config", {}), "thinking_level": effort}
        self._access: KeyAccess = access or KeyAccess(PROVIDER)
        self.provider = self._access.provider
        # Our own client: with aiohttp installed, the SDK would use aiohttp and repeat calls silently.
        self._http = httpx2.AsyncClient(timeout=timeout_seconds)
        self._reached = client_place(api_key, access)
        self._version = VERTEX_VERSION if access else API_VERSION
        self._client = genai.Client(
            **self._reached,
            http_options=types.HttpOptions(
                base_url=base_url,
                api_version=self._version,
                timeout=int(timeout_seconds * 1_000),
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_async_client=self._http,
            ),
        )

    def preview(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body that the SDK would send, from a transport that sends nothing."""
        bodies: list[dict[str, Any]] = [{"model": self.name}]

        def take(asked: httpx2.Request) -> httpx2.Response:
            bodies[0] |= json.loads(asked.content)
            return httpx2.Response(200, json={"candidates": [{"finishReason": "STOP"}]})

        with httpx2.Client(transport=httpx2.MockTransport(take)) as http:
            options = types.HttpOptions(api_version=self._version, httpx_client=http)
            client = genai.Client(**self._reached, http_options=options)
            contents, config = [_wire(message) for message in request.messages], self._config(request)
            client.models.generate_content(model=self.name, contents=contents, config=config)
        return bodies[0]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        await self._http.aclose()
        self._client.close()

    async def complete(
        self,
        request: ChatRequest,
        on_text: Callable[[str], None] | None = None,
        on_broken: Callable[[TokenUsage], None] | None = None,
    ) -> ChatResponse:
        """Call the model once. Raises ModelUnavailable or ModelRejected."""
        contents, config = [_wire(message) for message in request.messages], self._config(request)
        token = await self._access.prepare()
        answers: list[types.GenerateContentResponse] = []
        try:
            with telling_broken(on_broken, lambda: _count_billed(answers, request)):
                async for answer in self._answers(contents, config, on_text):
                    answers.append(answer)
                response = _response(answers, self.name, request, self.provider)
        except (errors.APIError, errors.UnknownApiResponseError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise self._fault(error, token) from error
        except self._access.faults as error:
            raise self._access.fault_of(error) from error
        except MISSHAPEN as error:
            raise misshapen(self.provider, error) from error
        self._access.accept()
        return response

    async def _answers(
        self, contents: list[Any], config: types.GenerateContentConfig, on_text: Callable[[str], None] | None
    ) -> AsyncGenerator[types.GenerateContentResponse]:
        """Yield the answer in one piece, or the pieces of a stream."""
        models = self._client.aio.models
        if on_text is None:
            yield await models.generate_content(model=self.name, contents=contents, config=config)
            return
        async for piece in await models.generate_content_stream(model=self.name, contents=contents, config=config):
            yield piece
            if text := _text(piece):
                on_text(text)

    async def count_tokens(self, request: ChatRequest) -> int | None:
        """Return the provider's token count. The API does not count system text, so it is counted as the first message.

        It does not count tools either; they are estimated.
        """
        token = await self._access.prepare()
        system = types.Content(role="user", parts=[types.Part(text=request.system)])
        try:
            counted = await self._client.aio.models.count_tokens(
                model=self.name, contents=[system, *(_wire(message) for message in request.messages)]
            )
            return counted.total_tokens and counted.total_tokens + sum(map(estimate_tool, request.tools))
        except (errors.APIError, errors.UnknownApiResponseError, httpx2.HTTPError, json.JSONDecodeError) as error:
            raise self._fault(error, token) from error
        except MISSHAPEN as error:
            raise misshapen(self.provider, error) from error

    def _config(self, request: ChatRequest) -> types.GenerateContentConfig:
        """Return the request's generation config. Raises ModelRejected for invalid options."""
        fields: dict[str, Any] = {
            **self._options,
            "system_instruction": request.system,
            "max_output_tokens": request.max_tokens,
            "automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True),
            "automatic_continuation": False,
        }
        if request.tools:
            fields["tools"] = [
                types.Tool(
                    function_declarations=[
                        types.FunctionDeclaration(
                            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
                        )
                        for tool in request.tools
                    ]
                )
            ]
        if request.tools and not request.may_call:
            none = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.NONE)
            fields["tool_config"] = types.ToolConfig(function_calling_config=none)
        if request.schema is not None:
            fields["response_mime_type"] = "application/json"
            if request.native:
                fields["response_json_schema"] = request.schema
        try:
            return types.GenerateContentConfig(**fields)
        except ValidationError as error:
            raise bad_options(self.provider, error) from error

    def _fault(self, error: Exception, token: str) -> ModelError:
        if isinstance(error, errors.APIError):
            headers = dict(getattr(error.response, "headers", None) or {}) | _asked_pause(error.details)
            return self._access.refusal(int(error.code or 500), error.message or str(error), headers, token)
        if isinstance(error, (httpx2.HTTPError, json.JSONDecodeError, errors.UnknownApiResponseError)):
            return unreachable(self.provider, error)
        return ModelRejected(f"{self.provider}: {error}")


def client_place(api_key: str | None, access: GoogleAccess | None) -> dict[str, Any]:
    """Return the client's arguments for the platform.

    Each is set explicitly, since the SDK would read missing ones from environment variables.
    """
    if access is None:
        return {"vertexai": False, "api_key": api_key}
    return {
        "vertexai": True,
        "credentials": access.credentials,
        "project": access.project,
        "location": access.location,
    }


def _wire(message: ChatMessage) -> Any:
    if message.wire is None:
        if message.content is not None:
            parts = [types.Part.model_validate_json(json.dumps(part)) for part in message.content if _says(part)]
            parts = parts or [types.Part(text=NO_ANSWER)]
        elif message.calls:
            parts = _parts_of_another_model(message)
        else:
            parts = [_result_part(output) for output in message.outputs]
            parts += [part for output in message.outputs for part in _media_parts(output)]
            if message.text:
                parts.append(types.Part(text=message.text))
        message.wire = types.Content(role="model" if message.role == "assistant" else "user", parts=parts)
    return message.wire


def _says(part: dict[str, Any]) -> bool:
    """Return False for an empty text without a signature: the API sends such parts but refuses them."""
    return bool(part.keys() - {"text", "thought"} or part.get("text"))


def _parts_of_another_model(message: ChatMessage) -> list[types.Part]:
    """Return text and calls of another model; the first call gets the placeholder signature."""
    calls = [types.Part(function_call=types.FunctionCall(name=call.name, args=call.input)) for call in message.calls]
    calls[0] = calls[0].model_copy(update={"thought_signature": UNSIGNED})
    return [*([types.Part(text=message.text)] if message.text != NO_ANSWER else []), *calls]


def _result_part(output: ToolOutput) -> types.Part:
    """Return the text of a call's result. An id of ours is left out: the API gave the call no id."""
    call_id = None if output.call_id.startswith(OWN_ID) else output.call_id
    said = {"error" if output.failed else "output": output.text}
    return types.Part(function_response=types.FunctionResponse(id=call_id, name=output.name, response=said))


def _media_parts(output: ToolOutput) -> list[types.Part]:
    """Return the images and documents of a result with the name of its tool; they follow the texts of all results."""
    media = [
        types.Part(inline_data=types.Blob(mime_type=item.media_type, data=base64.b64decode(item.data)))
        for item in output.media
    ]
    return (
        [types.Part(text=f"[shown by {output.name}: {truncate(output.text, MAX_LABEL_CHARS)}]"), *media]
        if media
        else []
    )


def _content(answers: list[types.GenerateContentResponse]) -> list[types.Part]:
    """Return the parts of an answer; pieces of one text are joined unless they carry a signature."""
    parts: list[types.Part] = []
    for answer in answers:
        candidate = answer.candidates[0] if answer.candidates else None
        for part in (candidate.content.parts if candidate and candidate.content else None) or []:
            last = parts[-1] if parts else None
            plain = part.text is not None and part.thought_signature is None and part.function_call is None
            if last is not None and plain and _may_grow(last, part):
                parts[-1] = last.model_copy(update={"text": f"{last.text}{part.text}"})
            else:
                parts.append(part)
    return parts


def _may_grow(last: types.Part, part: types.Part) -> bool:
    return last.text is not None and last.thought == part.thought and last.thought_signature is None


def _calls(parts: list[types.Part]) -> tuple[ToolCall, ...]:
    """Return the calls in an answer. A call without an id from the API gets its number as id."""
    called = [part.function_call for part in parts if part.function_call is not None]
    return tuple(
        call_of(call.id or f"{OWN_ID}{number}", call.name or "", call.args or {}) for number, call in enumerate(called)
    )


def _text(answer: types.GenerateContentResponse) -> str:
    candidate = answer.candidates[0] if answer.candidates else None
    parts = (candidate.content.parts if candidate and candidate.content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _response(
    answers: list[types.GenerateContentResponse], name: str, request: ChatRequest, provider: str
) -> ChatResponse:
    """Combine the pieces of one answer. A stream without a stop reason counts as interrupted."""
    feedback = next((answer.prompt_feedback for answer in answers if answer.prompt_feedback), None)
    blocked = feedback is not None and feedback.block_reason is not None
    reasons = [
        candidate.finish_reason.value
        for answer in answers
        for candidate in (answer.candidates or [])[:1]
        if candidate.finish_reason
    ]
    if not reasons and not blocked:
        raise cut_short(provider)
    last, parts = answers[-1], _content(answers) if request.tools else []
    return ChatResponse(
        text=without_surrogates("".join(map(_text, answers))),
        calls=_calls(parts),
        content=tuple(map(_as_received, parts)),
        stop=StopReason.REFUSAL if blocked else _STOPS.get(reasons[-1], StopReason.OTHER),
        usage=_usage(next((answer.usage_metadata for answer in reversed(answers) if answer.usage_metadata), None)),
        model=last.model_version or name,
        request_id=last.response_id or "",
    )


def _as_received(part: types.Part) -> Any:
    """Return a part as JSON. Lone surrogates are replaced first, since JSON cannot contain them."""
    try:
        return storable(part.model_dump(mode="json", exclude_none=True))
    except ValueError:
        texts = without_surrogates(part.model_dump(exclude_none=True))
        return storable(types.Part.model_validate(texts).model_dump(mode="json", exclude_none=True))


def _usage(counted: types.GenerateContentResponseUsageMetadata | None) -> TokenUsage:
    """Convert Gemini's counts: its prompt includes cached tokens, its answer excludes thoughts."""
    if counted is None:
        return TokenUsage()
    cached, thoughts = counted.cached_content_token_count or 0, counted.thoughts_token_count or 0
    return TokenUsage(
        input_tokens=max(0, (counted.prompt_token_count or 0) - cached),
        output_tokens=(counted.candidates_token_count or 0) + thoughts,
        cached_tokens=cached,
        thinking_tokens=thoughts,
    )


def _count_billed(answers: list[types.GenerateContentResponse], request: ChatRequest) -> TokenUsage | None:
    """Return the billed usage of an interrupted answer; the counts come with some pieces, or only with the last."""
    if not answers:
        return None
    written = json.dumps([part.model_dump(mode="json", exclude_none=True) for part in _content(answers)])
    estimated = estimate_usage(request, written)
    counted = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    usage = _usage(counted[-1]) if counted else estimated
    return usage.model_copy(update={"output_tokens": max(usage.output_tokens, estimated.output_tokens)})


def _asked_pause(body: Any) -> dict[str, str]:
    """Return the delay that Gemini requests in the body of a 429 (RetryInfo, ``"17s"``), not in a header."""
    for detail in _list_of(_list_of(body, "error"), "details"):
        delay = _list_of(detail, "retryDelay")
        if isinstance(delay, str) and delay.endswith("s"):
            return {"retry-after": delay.removesuffix("s")}
    return {}


def _list_of(value: Any, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) or () if isinstance(value, dict) else ()


def open_model(model: ModelSettings, key: str, _environment: Mapping[str, str], _sends: bool) -> GeminiModel:
    """Return the configured Gemini model, by a key."""
    return GeminiModel(model.model_name, key, **connection(model))


def open_on_vertex(model: ModelSettings, _key: str, environment: Mapping[str, str], sends: bool) -> GeminiModel:
    """Return the configured Gemini model on Vertex AI, by Application Default Credentials."""
    from fireswarm.llm.providers.google_access import google_access

    access = google_access(model, environment, sends=sends)
    return GeminiModel(model.model_name, None, access=access, **connection(model))
