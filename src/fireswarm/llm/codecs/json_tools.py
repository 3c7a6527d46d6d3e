"""Tool calls as JSON, for models without tools: the system text describes the tools, and the answer is parsed. Pure.

An answer is ``{"text": ..., "calls": [{"name": ..., "input": {...}}]}``. ``input`` may also be JSON text, since a
schema that a provider enforces cannot describe the inputs of all tools. The outputs of calls are sent as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from fireswarm.contracts.llm.chat import OWN_ID, ChatMessage, ChatRequest, ChatResponse, StopReason, ToolCall, ToolSpec
from fireswarm.contracts.llm.received import call_of
from fireswarm.contracts.text_page import say_after
from fireswarm.llm.codecs.json_text import Undecodable, json_params, object_in
from fireswarm.redaction import REDACTED

FIELDS = frozenset({"text", "calls"})
NOT_SHOWN = "[images and documents are not shown to a model that answers with JSON]"


@dataclass(frozen=True, slots=True)
class JsonTools:
    """The codec of one model. ``protocol`` instructs the model how to answer."""

    protocol: str

    def encode(self, request: ChatRequest, *, native: bool) -> ChatRequest:
        """Return the request without tools. With *native*, the provider enforces the schema of the answer."""
        schema = answer_schema(request.tools)
        parts = [request.system, self.protocol, describe_tools(request.tools)]
        if not native:
            parts.append(f"The JSON Schema of an answer:\n{json.dumps(schema, separators=(',', ':'))}")
        if request.for_summary:
            schema = None
        return replace(
            request,
            system="\n\n".join(part for part in parts if part),
            messages=tuple(map(_encode_message, request.messages)),
            schema=schema,
            native=native and schema is not None,
            tools=(),
        )

    def decode(self, response: ChatResponse, decision: int, tools: Sequence[ToolSpec]) -> ChatResponse:
        """Return the answer with its calls. Raises Undecodable with the reason."""
        answer = object_in(response.text)
        if unknown := sorted(answer.keys() - FIELDS):
            raise Undecodable(f"unknown fields {', '.join(unknown)}; an answer has the fields text and calls")
        given, text = answer.get("calls") or [], answer.get("text") or ""
        if not isinstance(text, str):
            raise Undecodable("text must be a string")
        if not isinstance(given, list):
            raise Undecodable("calls must be a list")
        known = {tool.name for tool in tools}
        calls = [_decode_call(item, decision, number, known) for number, item in enumerate(cast("list[Any]", given), 1)]
        return response.model_copy(update={"text": text, "calls": tuple(calls)})


def describe_fault(fault: str, stop: StopReason) -> str:
    """Return why an answer cannot be used; for a truncated answer, the reason names the token limit."""
    if stop is StopReason.MAX_TOKENS:
        return f"the answer was truncated at the token limit (raise model.max_tokens, or answer more briefly): {fault}"
    return fault


def answer_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the JSON Schema of an answer, in the subset of all providers: closed objects, no references."""
    call = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "input"],
        "properties": {
            "name": {"type": "string", "enum": [tool.name for tool in tools]},
            "input": {"type": "string", "description": "the input of the tool, as JSON text"},
        },
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["text", "calls"],
        "properties": {"text": {"type": "string"}, "calls": {"type": "array", "items": call}},
    }


def describe_tools(tools: Sequence[ToolSpec]) -> str:
    """Return the tools as Markdown, one a line."""
    lines = [f"- `{tool.name}`: {tool.description} Input: {_describe_input(tool)}" for tool in tools]
    return "\n".join(["# Tools", "", *lines]) if lines else ""


def _describe_input(tool: ToolSpec) -> str:
    """Return names and types of the parameters if that is sufficient, otherwise the schema."""
    properties: dict[str, dict[str, Any]] = tool.parameters.get("properties", {})
    if "$defs" in tool.parameters or any(not _is_plain(schema) for schema in properties.values()):
        return json.dumps(tool.parameters, separators=(",", ":"))
    required = tool.parameters.get("required", ())
    named = (
        f"{name}{'' if name in required else '?'}: {'|'.join(schema.get('enum', ())) or schema['type']}"
        for name, schema in properties.items()
    )
    return ", ".join(named) or "none"


def _is_plain(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("type"), str) and "properties" not in schema and "items" not in schema


def _decode_call(item: Any, decision: int, number: int, known: set[str]) -> ToolCall:
    """Return one call.

    An unusable input becomes the call's error. Raises Undecodable if *item* does not have the form of a call.
    """
    if not isinstance(item, dict) or not isinstance(name := cast("dict[str, Any]", item).get("name"), str):
        raise Undecodable(f'calls.{number} must be an object with "name" and "input"')
    if name not in known:
        raise Undecodable(f"calls.{number}: unknown tool {name!r}; known: {', '.join(sorted(known))}")
    call_id = f"{OWN_ID}{decision}-{number}"
    try:
        call = call_of(call_id, name, json_params(cast("dict[str, Any]", item).get("input")))
        return call.model_copy(update={"redacted": REDACTED in json.dumps(call.input, ensure_ascii=False)})
    except Undecodable as error:
        return ToolCall(id=call_id, name=name, fault=f"the input cannot be used: {error}")


def _encode_message(message: ChatMessage) -> ChatMessage:
    """Return a message with the outputs of calls as text. An answer is sent back exactly as the model wrote it."""
    if not message.outputs:
        return message
    parts = [
        say_after(f"# Output of {item.name}{' (failed)' if item.failed else ''}", item.text, item.name)
        for item in message.outputs
    ]
    if any(output.media for output in message.outputs):
        parts.append(NOT_SHOWN)
    return ChatMessage("user", "\n\n".join([*parts, message.text] if message.text else parts))
