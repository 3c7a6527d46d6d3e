"""Prompts, answers and inputs of tools as attributes of spans: JSON in the form of the conventions, without secrets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ChatResponse, ToolCall
from fireswarm.redaction import Redactor

Parts = list[dict[str, Any]]


def of_request(request: ChatRequest, redact: Redactor) -> dict[str, str]:
    """Return the attributes with the instructions and messages of a request."""
    messages = [{"role": message.role, "parts": _parts_of(message)} for message in request.messages]
    return {
        "gen_ai.system_instructions": _render(_text(request.system), redact),
        "gen_ai.input.messages": _render(messages, redact),
    }


def of_response(response: ChatResponse, redact: Redactor) -> str:
    """Return the message of an answer."""
    parts = [*_text(response.text), *_calls(response.calls)]
    return _render([{"role": "assistant", "parts": parts, "finish_reason": response.stop.value}], redact)


def of_arguments(call: ToolCall, redact: Redactor) -> str:
    """Return the input of a call."""
    return _render(call.input, redact)


def _parts_of(message: ChatMessage) -> Parts:
    """Return the parts of a message; media are left out."""
    outputs = [
        {"type": "tool_call_response", "id": output.call_id, "response": output.text} for output in message.outputs
    ]
    return [*outputs, *_text(message.text), *_calls(message.calls)]


def _text(text: str) -> Parts:
    return [{"type": "text", "content": text}] if text else []


def _calls(calls: Sequence[ToolCall]) -> Parts:
    return [{"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.input} for call in calls]


def _render(value: Any, redact: Redactor) -> str:
    return json.dumps(redact.value(value), ensure_ascii=False, default=str)
