"""Chat completions of a local server: what it refuses, as OpenAI and others document it, and what it answers."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.provider_rules import TOOL_NAME, schema_fault, signature_of

FIELDS = {
    "model", "messages", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "response_format", "stream",
    "stream_options", "temperature", "reasoning_effort",
}  # fmt: skip
THOUGHTS = ("reasoning", "reasoning_content", "reasoning_details")
MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "refusal", *THOUGHTS},
    "tool": {"role", "content", "tool_call_id"},
}
IMAGE = re.compile(r"^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$")
STOPS = {"end": "stop", "max_tokens": "length", "refusal": "stop"}


def openai_fault(body: dict[str, Any]) -> str:
    if extra := set(body) - FIELDS:
        return f"Unrecognized request arguments supplied: {sorted(extra)}"
    if not body.get("model") or not body.get("messages"):
        return "model and messages are required"
    if "stream_options" in body and not body.get("stream"):
        return "stream_options is allowed only with stream"
    if ("max_tokens" in body) == ("max_completion_tokens" in body):
        return "one of max_tokens and max_completion_tokens is required"
    faults = (_message_fault(message) for message in body["messages"])
    return (
        next((fault for fault in faults if fault), "")
        or _order_fault(body["messages"])
        or _tools_fault(body)
        or _format_fault(body.get("response_format"))
    )


def _message_fault(message: dict[str, Any]) -> str:
    role = message.get("role", "")
    if role not in MESSAGE_FIELDS or set(message) - MESSAGE_FIELDS[role]:
        return f"messages: unknown role or field: {role} {sorted(set(message) - MESSAGE_FIELDS.get(role, set()))}"
    content = message.get("content")
    if role == "assistant":
        return _assistant_fault(message)
    if isinstance(content, list) and role == "user":
        return next((fault for part in content if (fault := _part_fault(part))), "")
    return "" if isinstance(content, str) and content else f"messages: content of {role} must be a text"


def _assistant_fault(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls", [])
    if not calls and not isinstance(message.get("content"), str):
        return "messages: content is required without tool_calls"
    for call in calls:
        if set(call) != {"id", "type", "function"} or not call["id"] or call["type"] != "function":
            return "messages: tool_calls need id, type and function"
        try:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return "messages: arguments must be a JSON object"
        except ValueError:
            return "messages: arguments must be JSON"
    for detail in message.get("reasoning_details", []):
        if detail.get("signature") != signature_of(detail["text"]):
            return "messages: reasoning_details: invalid signature in thinking block"
    return ""


def _part_fault(part: dict[str, Any]) -> str:
    if part.get("type") == "text":
        return "" if part.get("text") else "messages: a text part is empty"
    if part.get("type") != "image_url":
        return f"messages: unknown part {part.get('type')}"
    return "" if IMAGE.match(part["image_url"]["url"]) else "messages: image_url must be a data URL of an image"


def _order_fault(messages: list[dict[str, Any]]) -> str:
    """Each call is answered by one tool message, before any other message; nothing else is answered."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return f"An assistant message with 'tool_calls' must be followed by tool messages: {open_calls}"
        open_calls = [call["id"] for call in message.get("tool_calls", [])]
        if len(set(open_calls)) != len(open_calls):
            return "messages: two tool_calls have the same id"
    if messages[0]["role"] != "system" or messages[-1]["role"] not in ("user", "tool") or open_calls:
        return "messages must begin with the system and end with the user or a tool"
    return ""


def _tools_fault(body: dict[str, Any]) -> str:
    if "tool_choice" in body and not body.get("tools"):
        return "tool_choice is only allowed when tools are specified"
    for tool in body.get("tools", []):
        function = tool.get("function", {})
        if tool.get("type") != "function" or not TOOL_NAME.match(function.get("name", "")):
            return "tools: functions need a name of letters, digits, _ and -"
        if function.get("parameters", {}).get("type") != "object":
            return f"Invalid schema for function '{function['name']}': schema must be of type object"
    return ""


def _format_fault(wanted: dict[str, Any] | None) -> str:
    if wanted is None or wanted.get("type") == "json_object":
        return ""
    given = wanted.get("json_schema", {})
    if wanted.get("type") != "json_schema" or not given.get("name") or "schema" not in given:
        return "response_format: json_schema needs a name and a schema"
    if given.get("strict") and _optional(given["schema"]):
        return "Invalid schema for response_format: 'required' must include every key in properties"
    return schema_fault(given["schema"])


def _optional(schema: dict[str, Any]) -> bool:
    properties: dict[str, Any] = schema.get("properties", {})
    missing = set(properties) - set(schema.get("required", ()))
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return bool(missing) or any(_optional(part) for part in inner)


def message_of(answers: int, reply: Any) -> dict[str, Any]:
    """The answer as one message."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.stop == "refusal":
        message |= {"content": None, "refusal": reply.text}
    if reply.thinking:
        detail = {
            "type": "reasoning.text",
            "text": reply.thinking,
            "signature": signature_of(reply.thinking),
            "index": 0,
        }
        message |= {"reasoning_content": reply.thinking, "reasoning_details": [detail]}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{answers}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(to)},
            }
            for number, (name, to) in enumerate(reply.calls)
        ]
    return message


def completion(model: str, answers: int, reply: Any) -> dict[str, Any]:
    """The answer in one piece."""
    choice = {"index": 0, "message": message_of(answers, reply), "finish_reason": _finish(reply), "logprobs": None}
    return {**_envelope(model, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def chunks(model: str, answers: int, reply: Any, pieces: Any) -> list[dict[str, Any]]:
    """The answer in pieces, as a stream has them; the counts come last, without a choice."""
    message = message_of(answers, reply)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in pieces(reply.thinking) if reply.thinking]
    for detail in message.get("reasoning_details", []):
        deltas += [
            {"reasoning_details": [{**detail, "text": piece, "signature": None}]} for piece in pieces(detail["text"])
        ]
        deltas.append({"reasoning_details": [{**detail, "text": ""}]})
    key = "refusal" if reply.stop == "refusal" else "content"
    deltas += [{key: piece} for piece in pieces(reply.text) if reply.text]
    for index, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        deltas.append({"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in pieces(function["arguments"])
        ]
    begin = _envelope(model, "chat.completion.chunk")
    events = [{**begin, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**begin, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
    return [*events, {**begin, "choices": [], "usage": _usage(reply)}]


def _finish(reply: Any) -> str:
    return "tool_calls" if reply.calls and reply.stop == "end" else STOPS[reply.stop]


def _envelope(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _usage(reply: Any) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reply.thinking_tokens},
    }
