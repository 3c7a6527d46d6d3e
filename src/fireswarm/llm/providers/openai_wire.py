"""Messages and answers of chat completions; the pieces of a stream are combined into one message. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fireswarm.contracts.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    StopReason,
    TokenUsage,
    ToolCall,
    ToolOutput,
)
from fireswarm.contracts.llm.received import call_of, storable, without_surrogates
from fireswarm.llm.prompt import NO_ANSWER
from fireswarm.llm.tokens import estimate_usage

_STOPS = {
    "stop": StopReason.END,
    "tool_calls": StopReason.END,
    "function_call": StopReason.END,
    "length": StopReason.MAX_TOKENS,
    "content_filter": StopReason.REFUSAL,
    "error": StopReason.OTHER,
    "malformed_function_call": StopReason.OTHER,
}
"""Endpoints use further values for a complete answer."""

THOUGHTS = ("reasoning_content", "reasoning")
"""Fields with thoughts as text, by endpoint.

They are sent back unchanged: some endpoints need them in a loop of calls.
"""

DETAILS = "reasoning_details"
"""Field with signed thoughts, at OpenRouter."""

GROWING = ("text", "summary", "data")
"""Fields of a signed thought that arrive in pieces."""


NO_TEXT = "(no output)"
"""Text that replaces an empty result: several servers refuse an empty message."""


@dataclass(slots=True)
class Gathered:
    """One answer, from one message or from the pieces of a stream."""

    model: str = ""
    request_id: str = ""
    finish: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[int, int] = field(default_factory=dict)
    """Position in ``calls`` of the call with this index in the stream."""

    def take_whole(self, message: Mapping[str, Any]) -> None:
        """Take a whole message."""
        self._take_texts(message)
        self.calls += [_call_fields(call) for call in message.get("tool_calls") or ()]
        self.details += message.get(DETAILS) or ()

    def take_piece(self, delta: Mapping[str, Any]) -> None:
        """Take a piece of a stream. A call's arguments arrive in pieces and are valid JSON only at the end."""
        self._take_texts(delta)
        for piece in delta.get("tool_calls") or ():
            self._take_call(piece)
        for piece in delta.get(DETAILS) or ():
            self._take_detail(piece)

    def _take_texts(self, message: Mapping[str, Any]) -> None:
        for name in ("content", "refusal", *THOUGHTS):
            if text := _text(message.get(name)):
                self.texts[name] = self.texts.get(name, "") + text

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        """Add a piece to its call.

        Some endpoints give all calls the same index, so a different id starts a new call.
        """
        fields = _call_fields(piece)
        index = piece.get("index") or 0
        place = self._open.get(index)
        if place is None or (fields["id"] and self.calls[place]["id"] not in ("", fields["id"])):
            self._open[index] = len(self.calls)
            self.calls.append(fields)
            return
        call = self.calls[place]
        call["id"] = call["id"] or fields["id"]
        call["function"]["name"] = call["function"]["name"] or fields["function"]["name"]
        call["function"]["arguments"] += fields["function"]["arguments"]

    def _take_detail(self, piece: dict[str, Any]) -> None:
        """Add a piece of a signed thought to the previous one, if it continues that thought."""
        last = self.details[-1] if self.details else None
        if last is None or (last.get("type"), last.get("index")) != (piece.get("type"), piece.get("index")):
            self.details.append(dict(piece))
            return
        for name, value in piece.items():
            if name in GROWING and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value


def response_of(gathered: Gathered, usage: Any, request: ChatRequest, name: str) -> ChatResponse:
    """Return the answer. A call without an id gets one, which its result refers to."""
    text = gathered.texts.get("content", "")
    refusal = gathered.texts.get("refusal", "")
    calls: tuple[ToolCall, ...] = ()
    content: list[Any] = []
    if request.tools:
        _fill_ids(gathered.calls, request.answers)
        calls = tuple(map(_tool_call, gathered.calls))
        content = storable(list(_content(gathered)))
    return ChatResponse(
        text=without_surrogates(text or refusal),
        calls=calls,
        content=tuple(content),
        stop=StopReason.REFUSAL if refusal else _STOPS.get((gathered.finish or "").lower(), StopReason.END),
        usage=usage_of(usage, request, gathered),
        model=gathered.model or name,
        request_id=gathered.request_id,
    )


def text_of(delta: Mapping[str, Any]) -> str:
    """Return the text of a piece."""
    return "".join(_text(delta.get(name)) for name in ("content", "refusal"))


def _text(content: Any) -> str:
    """Return the text of a field: a string at most endpoints, a list of parts at some."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in cast("list[Any]", content) if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _content(gathered: Gathered) -> tuple[Any, ...]:
    """Return the message to send back, then its signed thoughts; each thought is included completely or left out."""
    said = {name: gathered.texts[name] for name in ("refusal", *THOUGHTS) if name in gathered.texts}
    message: dict[str, Any] = {"role": "assistant", "content": gathered.texts.get("content") or None, **said}
    if gathered.calls:
        message["tool_calls"] = gathered.calls
    elif message["content"] is None:
        message["content"] = ""
    return (message, *({"thought": True, **detail} for detail in gathered.details))


def _call_fields(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call in the form that is sent back, with further fields of the endpoint, such as a signature."""
    function: Mapping[str, Any] = call.get("function") or {}
    arguments = function.get("arguments")
    further = {name: value for name, value in call.items() if name not in ("index", "id", "type", "function")}
    return {
        "id": call.get("id") or "",
        "type": "function",
        "function": {
            "name": function.get("name") or "",
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
        },
        **{name: value for name, value in further.items() if value is not None},
    }


def _fill_ids(calls: list[dict[str, Any]], decision: int) -> None:
    """Give an id to calls without one, and a new id to the second of two calls with the same id."""
    seen: set[str] = set()
    for number, call in enumerate(calls):
        if not call["id"] or call["id"] in seen:
            call["id"] = f"call_{decision}_{number}"
        seen.add(call["id"])


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    """Return a call with its arguments. An endpoint may omit the arguments of a function without parameters."""
    function = call["function"]
    try:
        given: object = json.loads(function["arguments"]) if function["arguments"].strip() else {}
    except (ValueError, RecursionError) as error:
        return ToolCall(id=call["id"], name=function["name"], fault=f"the input is not JSON: {error}")
    return call_of(call["id"], function["name"], given)


def usage_of(usage: Any, request: ChatRequest, gathered: Gathered) -> TokenUsage:
    """Convert the counts; cached tokens are part of the prompt. Without counts, they are estimated."""
    if usage is None:
        written = json.dumps([gathered.texts, gathered.calls], ensure_ascii=False)
        return estimate_usage(request, written)
    details, more = usage.prompt_tokens_details, usage.completion_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return TokenUsage(
        input_tokens=max(0, (usage.prompt_tokens or 0) - cached),
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=cached,
        thinking_tokens=(more.reasoning_tokens or 0) if more else 0,
    )


def wire_messages(message: ChatMessage) -> list[dict[str, Any]]:
    """Return our message in the API's form: each result is one message, directly after the calls."""
    if message.wire is None:
        message.wire = _assistant(message) if message.role == "assistant" else _user(message)
    return message.wire


def _assistant(message: ChatMessage) -> list[dict[str, Any]]:
    """Return an answer unchanged: its message with the details of its thoughts."""
    if message.calls and not message.content:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.input)}}
            for call in message.calls
        ]
        return [
            {"role": "assistant", "content": None if message.text == NO_ANSWER else message.text, "tool_calls": calls}
        ]
    if not message.content:
        return [{"role": "assistant", "content": message.text}]
    first, *thoughts = message.content
    if "tool_calls" in first:
        first = {**first, "tool_calls": [_with_valid_arguments(call) for call in first["tool_calls"]]}
    details = [{name: value for name, value in thought.items() if name != "thought"} for thought in thoughts]
    return [{**first, **({"reasoning_details": details} if details else {})}]


def _with_valid_arguments(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call with arguments that are valid JSON: several servers refuse a history with others."""
    function = call["function"]
    if not function["arguments"].strip():
        return {**call, "function": {**function, "arguments": "{}"}}
    try:
        valid = isinstance(json.loads(function["arguments"]), dict)
    except (ValueError, RecursionError):
        valid = False
    if valid:
        return call
    return {**call, "function": {**function, "arguments": json.dumps({"not_valid": function["arguments"]})}}


def _user(message: ChatMessage) -> list[dict[str, Any]]:
    results = [_result(output) for output in message.outputs]
    images = [part for output in message.outputs for part in _images(output)]
    if not images:
        return [*results, *([{"role": "user", "content": message.text}] if message.text or not results else [])]
    text = [{"type": "text", "text": message.text}] if message.text else []
    return [*results, {"role": "user", "content": [*images, *text]}]


def _result(output: ToolOutput) -> dict[str, Any]:
    """Return the result of a call. It is text only: images follow in a user message."""
    notes = [
        f"[{item.media_type}: not shown, this API takes images only]" for item in output.media if not _is_image(item)
    ]
    failed = "error: " if output.failed and not output.text.lower().startswith("error") else ""
    text = "\n".join(part for part in (f"{failed}{output.text}" if output.text or failed else "", *notes) if part)
    return {"role": "tool", "tool_call_id": output.call_id, "content": text or NO_TEXT}


def _images(output: ToolOutput) -> list[dict[str, Any]]:
    images = [
        {"type": "image_url", "image_url": {"url": f"data:{item.media_type};base64,{item.data}"}}
        for item in output.media
        if _is_image(item)
    ]
    return [{"type": "text", "text": f"Image of {output.name} ({output.call_id}):"}, *images] if images else []


def _is_image(item: Any) -> bool:
    return item.media_type.startswith("image/")
