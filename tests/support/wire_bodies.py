"""Where each provider's request has its parts."""

from __future__ import annotations

import json
from typing import Any

from tests.support.minds import CLAUDE, GEMINI
from tests.support.provider_replies import Received
from tests.support.provider_rules import signature_of


def plain(value: Any) -> Any:
    """The same without cache markers, which move with the end of a conversation and are no part of its text."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name != "cache_control"}
    return [plain(part) for part in value] if isinstance(value, list) else value


def turns_of(provider: str, body: dict[str, Any]) -> list[Any]:
    """The messages, each in one form whether it has a marker or not."""
    turns = body["contents"] if provider in GEMINI else body["messages"]
    if provider in CLAUDE:
        return [
            plain({**turn, "content": [{"type": "text", "text": turn["content"]}]})
            if isinstance(turn["content"], str)
            else plain(turn)
            for turn in turns
        ]
    return turns[1:] if provider == "openai" else turns


def system_of(provider: str, body: dict[str, Any]) -> str:
    if provider in GEMINI:
        return body["systemInstruction"]["parts"][0]["text"]
    return body["messages"][0]["content"] if provider == "openai" else body["system"][0]["text"]


def schemas_of(provider: str, body: dict[str, Any]) -> dict[str, Any]:
    """The schemas of the tools, by name."""
    if provider in CLAUDE:
        return {tool["name"]: tool["input_schema"] for tool in body["tools"]}
    if provider == "openai":
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    declared = body["tools"][0]["functionDeclarations"]
    return {tool["name"]: tool.get("parametersJsonSchema") or tool["parameters_json_schema"] for tool in declared}


def may_call(provider: str, body: dict[str, Any]) -> bool:
    if provider in GEMINI:
        return (body.get("toolConfig") or {}).get("functionCallingConfig", {}).get("mode") != "NONE"
    return body.get("tool_choice") != ("none" if provider == "openai" else {"type": "none"})


def longest_answer_of(provider: str, body: dict[str, Any]) -> int:
    return body["generationConfig"]["maxOutputTokens"] if provider in GEMINI else body["max_tokens"]


def asks_natively(provider: str, body: dict[str, Any]) -> bool:
    """True if the request has a schema for the answer."""
    if provider in GEMINI:
        return "responseJsonSchema" in body.get("generationConfig", {})
    return "response_format" in body if provider == "openai" else "format" in body.get("output_config", {})


def thought_signature(provider: str, thinking: str, first_call: str) -> str:
    """The signature that must come back: of the thought, and for Gemini of the first call."""
    return signature_of(first_call if provider in GEMINI else thinking)


def standard(sent: Any) -> str:
    """The body as text. Google's SDK writes base64 with the alphabet for addresses, which its API reads as well."""
    return json.dumps(sent).replace("-", "+").replace("_", "/")


def model_turn(provider: str, body: dict[str, Any]) -> dict[str, Any]:
    """The first answer of the model in the request."""
    return next(turn for turn in turns_of(provider, body) if turn["role"] in ("assistant", "model"))


def is_streamed(provider: str, request: Received) -> bool:
    """Return True if a request asks for the answer in pieces: in its body, or by its path."""
    return bool(request.body.get("stream")) or "stream" in request.target.lower()
