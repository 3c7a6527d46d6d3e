"""Faults of a request, as the providers document them: one that they refuse is refused with its reason here."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
BLOCKS: dict[str, set[str]] = {
    "text": {"type", "text", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
}


def signature_of(text: str) -> str:
    """The signature of a thought, or of a call, as this server gives it."""
    return base64.b64encode(hashlib.sha256(f"signed {text}".encode()).digest()).decode()


def anthropic_fault(body: dict[str, Any], headers: dict[str, str], kind: str) -> str:
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not key or "anthropic-version" not in headers:
        return "a key and anthropic-version are required"
    return anthropic_body_fault(body, kind) if body.get("model") else "model is required"


def anthropic_body_fault(body: dict[str, Any], kind: str) -> str:
    if kind == "generate" and not isinstance(body.get("max_tokens"), int):
        return "max_tokens is required"
    messages: list[dict[str, Any]] = body.get("messages", [])
    roles = [message.get("role") for message in messages]
    if not roles or roles[0] != "user" or roles[-1] != "user" or set(roles) - {"user", "assistant"}:
        return "messages: begin and end with the user"
    if any(not message.get("content") for message in messages):
        return "messages: text content blocks must be non-empty"
    for message in messages:
        if fault := next((fault for block in _blocks(message) if (fault := _block_fault(block))), ""):
            return f"messages: {fault}"
    if fault := _pairs_fault(messages) or _tools_fault(body) or _thinking_fault(body):
        return fault
    output = (body.get("output_config") or {}).get("format")
    if output is None:
        return ""
    return (
        schema_fault(output["schema"]) if output.get("type") == "json_schema" else "output_config.format: unknown type"
    )


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block_fault(block: dict[str, Any]) -> str:
    kind = str(block.get("type"))
    if kind not in BLOCKS or set(block) - BLOCKS[kind]:
        return f"{kind}: extra inputs are not permitted: {sorted(set(block) - BLOCKS.get(kind, set()))}"
    if kind == "text" and not str(block["text"]).strip():
        return "text content blocks must contain non-whitespace text"
    if kind == "thinking" and block.get("signature") != signature_of(block["thinking"]):
        return "thinking blocks cannot be modified"
    if kind == "image" and block["source"]["media_type"] not in IMAGES:
        return "image.source.media_type: not supported"
    if kind == "tool_result":
        content = block.get("content") or []
        inner = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return next((fault for each in inner if (fault := _block_fault(each))), "")
    return ""


def _pairs_fault(messages: list[dict[str, Any]]) -> str:
    """Each call is answered in the next message, before anything else in it; nothing else is answered."""
    open_calls: set[str] = set()
    for message in messages:
        blocks = _blocks(message)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if message["role"] == "user":
            if set(results) - open_calls:
                return f"unexpected tool_use_id in tool_result blocks: {sorted(set(results) - open_calls)}"
            if missing := open_calls - set(results):
                return f"tool_use ids were found without tool_result blocks immediately after: {sorted(missing)}"
            if len(results) != len(set(results)):
                return "each tool_use must have a single result"
            if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
                return "tool_result blocks must come first"
        open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return ""


def _thinking_fault(body: dict[str, Any]) -> str:
    """A budget is less than the answer's limit; an answer whose calls are answered now begins with a thought."""
    thinking = body.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return ""
    budget = thinking.get("budget_tokens", 0)
    if not 1_024 <= budget < body.get("max_tokens", budget + 1):
        return "`max_tokens` must be greater than `thinking.budget_tokens`"
    blocks = next((_blocks(each) for each in reversed(body["messages"]) if each["role"] == "assistant"), [])
    if any(block["type"] == "tool_use" for block in blocks) and blocks[0]["type"] != "thinking":
        return "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
    return ""


def _tools_fault(body: dict[str, Any]) -> str:
    tools: list[dict[str, Any]] = body.get("tools") or []
    used = any(block["type"] in ("tool_use", "tool_result") for each in body["messages"] for block in _blocks(each))
    if used and not tools:
        return "Requests which include tool_use or tool_result blocks must define tools"
    names = [tool.get("name", "") for tool in tools]
    if len(set(names)) != len(names) or not all(TOOL_NAME.match(name) for name in names):
        return "tools: names must be unique, of letters, digits, _ and -"
    schemas = {tool["name"]: tool.get("input_schema") or {} for tool in tools}
    if bad := [name for name, schema in schemas.items() if schema.get("type") != "object"]:
        return f"tools: input_schema.type must be object: {bad}"
    bad = [name for name, schema in schemas.items() if schema.keys() & {"oneOf", "allOf", "anyOf"}]
    return f"tools: input_schema does not support oneOf, allOf, or anyOf at the top level: {bad}" if bad else ""


def gemini_fault(body: dict[str, Any], headers: dict[str, str]) -> str:
    if not headers.get("x-goog-api-key"):
        return "API key not valid"
    return gemini_body_fault(body)


def gemini_body_fault(body: dict[str, Any]) -> str:
    contents = body.get("contents") or []
    if not contents or any(turn.get("role") not in ("user", "model") for turn in contents):
        return "contents: roles are user and model"
    if any(not turn.get("parts") or not all(map(_says_something, turn["parts"])) for turn in contents):
        return "contents: empty text"
    if fault := _gemini_pairs_fault(contents) or _declarations_fault(body):
        return fault
    config = body.get("generationConfig") or {}
    if "responseJsonSchema" in config and config.get("responseMimeType") != "application/json":
        return "responseJsonSchema needs responseMimeType application/json"
    return schema_fault(config.get("responseJsonSchema") or {})


def _says_something(part: dict[str, Any]) -> bool:
    return bool(
        part.keys() & {"functionCall", "functionResponse", "inlineData", "thoughtSignature"} or part.get("text")
    )


def _gemini_pairs_fault(contents: list[dict[str, Any]]) -> str:
    called: list[str] = []
    thought = False
    for turn in contents:
        calls = [part for part in turn["parts"] if "functionCall" in part]
        answered = [part["functionResponse"]["name"] for part in turn["parts"] if "functionResponse" in part]
        if turn["role"] == "user" and answered != called:
            return "the number of function response parts must equal that of the function call parts, in order"
        thought = any(part.get("thought") for part in turn["parts"])
        if calls and thought and "thoughtSignature" not in calls[0]:
            return "Function call is missing a thought_signature in functionCall parts"
        if not all(map(_signed, calls)):
            return "Thought signature is not valid"
        called = [part["functionCall"]["name"] for part in calls]
    return ""


UNSIGNED = "skip_thought_signature_validator"
"""What Google accepts for the signature of a call that another model made."""


def _signed(call: dict[str, Any]) -> bool:
    """A call without a signature is not the first of its answer; the rule for that one is above."""
    given = str(call.get("thoughtSignature") or "")
    both_alphabets = given.replace("-", "+").replace("_", "/")
    return given in ("", UNSIGNED) or both_alphabets == signature_of(call["functionCall"]["name"])


def _declarations_fault(body: dict[str, Any]) -> str:
    declared = [each for tool in body.get("tools") or [] for each in tool.get("functionDeclarations", [])]
    if any(not TOOL_NAME.match(each.get("name", "")) or not each.get("description") for each in declared):
        return "function declarations need a name and a description"
    bad = [
        each["name"]
        for each in declared
        if (each.get("parametersJsonSchema") or each.get("parameters_json_schema") or {}).get("type") != "object"
    ]
    return f"parametersJsonSchema must be of type object: {bad}" if bad else ""


def schema_fault(schema: dict[str, Any]) -> str:
    """Objects must be closed, as structured output demands."""
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "additionalProperties must be false"
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return next((fault for part in inner if (fault := schema_fault(part))), "")
